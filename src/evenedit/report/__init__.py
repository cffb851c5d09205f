"""The report made from results: one HTML page, tables and figures as files, and `results.json`."""
