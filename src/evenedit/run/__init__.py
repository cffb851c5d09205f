"""What makes a study advance: the runner, its workers and executors, measuring."""
