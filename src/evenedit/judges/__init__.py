"""Rate edits with vision-language models."""
