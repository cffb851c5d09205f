"""What every statistic is made with: panels, bootstrap, permutation, intervals."""
