"""Power and minimum detectable effects of a design."""
