"""Whether a result depends on a choice: thresholds, missing scores, single faces, ways of asking."""
