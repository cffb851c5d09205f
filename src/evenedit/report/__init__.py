"""Render results as tables, figures, text and HTML pages."""
