"""A study as its users handle it: the front door, and everything that opens one."""
