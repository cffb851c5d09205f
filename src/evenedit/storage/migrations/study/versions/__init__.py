"""One migration for each schema version of the study's database."""
