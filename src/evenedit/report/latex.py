"""Text for LaTeX."""

from __future__ import annotations

import re

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "−": r"$-$",
    "×": r"$\times$",
    "Δ": r"$\Delta$",
    "–": "--",
    "…": r"\dots{}",
}
_SPECIAL = re.compile("|".join(re.escape(c) for c in _LATEX))


def latex(text: str) -> str:
    """Text that LaTeX prints as it stands."""
    return _SPECIAL.sub(lambda m: _LATEX[m[0]], text)
