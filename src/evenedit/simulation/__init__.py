"""Everything SIMULATED: drawn portraits, editors and judges with known behaviour, a provider on this machine."""
