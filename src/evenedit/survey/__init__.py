"""Collect ratings from human participants."""
