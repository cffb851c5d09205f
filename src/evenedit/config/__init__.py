"""The study file: its tables, how they are checked, and the templates a new study begins as."""
