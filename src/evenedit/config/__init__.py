"""Read and validate the study file, and provide templates for new studies."""
