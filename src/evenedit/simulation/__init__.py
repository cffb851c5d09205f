"""SIMULATED portraits, editors and judges with known behaviour."""
