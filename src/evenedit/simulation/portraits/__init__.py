"""Drawn portraits: faces made of parameters, painted in CIELAB."""
