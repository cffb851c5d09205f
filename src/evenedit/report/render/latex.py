"""Escape text for LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
    "±": r"$\pm$",
    "∓": r"$\mp$",
    "·": r"$\cdot$",
    "²": r"$^2$",
    "Δ": r"$\Delta$",
    "α": r"$\alpha$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "κ": r"$\kappa$",
    "λ": r"$\lambda$",
    "ρ": r"$\rho$",
    "“": "``",
    "”": "''",
    "’": "'",
    "\N{NO-BREAK SPACE}": "~",
    "–": "--",
    "…": r"\dots{}",
}
_SPECIAL = re.compile("|".join(re.escape(c) for c in _LATEX))


def latex(text: str) -> str:
    """Return text escaped so that LaTeX prints it unchanged."""
    return _SPECIAL.sub(lambda m: _LATEX[m[0]], text)


def stack(lines: Sequence[str], side: str, align: str) -> str:
    """Return a cell of several lines, aligned with its row at the top (t) or bottom (b)."""
    if len(lines) == 1:
        return lines[0]
    body = r" \\ ".join(lines)
    return f"\\begin{{tabular}}[{side}]{{@{{}}{align}@{{}}}}{body}\\end{{tabular}}"
