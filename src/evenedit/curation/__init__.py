"""Choose one portrait per cell of the design from candidate pools."""
