"""Plan the requests, samples and assignments of a study."""
