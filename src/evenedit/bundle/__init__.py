"""Write, verify, rescore and publish a study as one sealed archive."""
