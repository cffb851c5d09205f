"""A study handed over whole: bundled, verified, scored again, published."""
