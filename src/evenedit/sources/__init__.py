"""Read portraits and labels from FairFace or a folder."""
