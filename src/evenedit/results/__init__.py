"""What an analysis says: the contract of `results.json`, and reading it back."""
