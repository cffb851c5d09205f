"""Define the records of `results.json`, and read and write them."""
