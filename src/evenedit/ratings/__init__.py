"""Answers of judges, instruments, people and reviewers, and the one table they make."""
