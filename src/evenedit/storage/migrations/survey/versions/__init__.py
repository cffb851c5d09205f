"""One migration for each schema version of the survey's database."""
