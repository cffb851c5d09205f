"""Read the answers of all raters into one table and combine judges."""
