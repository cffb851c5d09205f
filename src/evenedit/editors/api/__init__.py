"""Editors behind an API."""
