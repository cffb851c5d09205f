"""How tables become HTML, LaTeX and CSV, and pictures contact sheets."""
