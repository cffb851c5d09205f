"""What a study plans: requests, samples and assignments."""
