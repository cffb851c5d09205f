"""Benchmarks: ratios taken in one run, since machines are noisy. Run with `make bench`."""
