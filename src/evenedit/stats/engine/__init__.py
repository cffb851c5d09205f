"""What every statistic is made with: panels, variances, tests, bootstrap, intervals."""
