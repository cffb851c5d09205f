"""Reasons of failures in words: alike ones together, and what to do about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

MOST = 8
"""Reasons that are listed; the others are counted."""
LONGEST = 300
"""Characters of a reason that are shown."""
_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|/[^\s'\":,]+/|\d+(?:\.\d+)?")
"""What differs between two failures of one kind: addresses, hashes, folders, numbers."""
_ADVICE = {
    r"out.?of.?memory|cannot allocate": "out of memory: 'evenedit plan STUDY' compares what each editor needs with the "
    "GPU that is there, and names the setting that fits",
    r"within [\d.]+ s|did not answer in time|TimeoutError": "out of time: raise [executor] timeout if an edit or "
    "answer may take longer, load_timeout if loading may",
    r"could not be stored": "pictures cannot be stored: see whether there is room, and whether [store] images answers",
    r"rate limit": "rate limits: lower [executor] calls, or run again later",
    r"cannot be loaded|could not load": "an editor cannot be loaded: 'evenedit doctor STUDY' says what is missing",
}
"""What to do, by what a reason says."""


def grouped(reasons: Mapping[str, int]) -> list[tuple[str, int]]:
    """Reasons that differ only in numbers, hashes or folders together, the most frequent first, the rest counted."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for reason, count in reasons.items():
        key = _VARYING.sub("…", reason)
        first.setdefault(key, reason)
        counts[key] += count
    ranked = [(_short(first[key]), count) for key, count in counts.most_common()]
    rest = ranked[MOST:]
    return ranked[:MOST] + ([(f"{len(rest)} other reasons", sum(c for _, c in rest))] if rest else [])


def advice(reasons: Mapping[str, int]) -> Iterator[str]:
    """What to do about these reasons, where it is known."""
    said = " ".join(reasons)
    return (f"→ {text}" for pattern, text in _ADVICE.items() if re.search(pattern, said, re.IGNORECASE))


def _short(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} …"
