"""Decide pass, fail or undecided from results."""
