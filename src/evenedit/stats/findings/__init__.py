"""What the estimates show, in order: shifts, gaps, what cannot be told, each with the cases behind it."""
