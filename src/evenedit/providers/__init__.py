"""Other people's services: calls, retries, budget and prices."""
