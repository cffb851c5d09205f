"""Plan, watch and maintain a study, and check its judges."""
