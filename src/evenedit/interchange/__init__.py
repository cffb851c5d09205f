"""Read and write tables and studies of other formats."""
