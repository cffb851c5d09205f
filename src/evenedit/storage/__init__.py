"""Read and write the databases of a study and its survey."""
