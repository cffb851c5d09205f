"""Differences between groups: rates, gaps, trends, models, mitigation, stereotypes."""
