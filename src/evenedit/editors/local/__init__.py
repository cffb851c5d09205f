"""Editors whose weights run on this machine."""
