"""Call remote services with retries, budgets and prices."""
