"""Image editors: local models, remote services and programs."""
