"""Portraits in."""
