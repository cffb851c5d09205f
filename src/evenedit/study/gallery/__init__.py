"""Every case to look at: found, opened, set side by side."""
