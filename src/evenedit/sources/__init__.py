"""Where a study's portraits come from: FairFace, or any folder with a CSV of labels."""
