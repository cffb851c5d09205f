"""The study's and the survey's databases: tables, migrations, locks, reading and writing."""
