"""Serve the survey, admin, curation, gallery and review pages."""
