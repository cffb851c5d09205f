"""What is audited: one self-contained file each."""
