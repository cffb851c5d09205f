"""People's ratings by who rated them: groups of raters, groups of portraits, and both together."""
