"""SIMULATED providers for development and tests."""
