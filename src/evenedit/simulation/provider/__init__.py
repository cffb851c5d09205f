"""For those who build and try things out: providers that are SIMULATED."""
