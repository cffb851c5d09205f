"""The gallery: search the cases of a study, open one, and show several side by side."""
