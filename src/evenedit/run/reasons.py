"""Reasons of failures: similar ones merged, and what to do about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from evenedit.providers.messages import one_line

MOST = 8
"""Reasons that are listed; the others are counted."""
LONGEST = 300
"""Characters of a reason that are shown."""
_VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|/[^\s'\":,]+/|\d+(?:\.\d+)?")
"""What differs between two failures of one kind: addresses, hashes, folders, numbers."""
_ADVICE = {
    r"out.?of.?memory|cannot allocate": "out of memory: 'evenedit plan STUDY' compares the memory that an editor needs "
    "with the GPU, and names a setting that fits",
    r"within [\d.]+ s|did not answer in time|TimeoutError": "out of time: raise [executor] timeout if an edit or "
    "answer may take longer, load_timeout if loading may",
    r"could not be stored": "pictures cannot be stored: check the free space, and whether [store] images is reachable",
    r"rate limit": "rate limits: lower [executor] calls, or run again later",
    r"cannot be loaded|could not load": "an editor cannot be loaded: 'evenedit doctor STUDY' shows what is missing",
}
"""Advice by a pattern in the reason."""


def grouped(reasons: Mapping[str, int]) -> list[tuple[str, int]]:
    """Merge reasons that differ only in numbers, hashes or folders; most frequent first, the rest counted."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for reason, count in reasons.items():
        key = _VARYING.sub("…", reason)
        first.setdefault(key, reason)
        counts[key] += count
    ranked = [(one_line(first[key], LONGEST), count) for key, count in counts.most_common()]
    rest = ranked[MOST:]
    return ranked[:MOST] + ([(f"{len(rest)} other reasons", sum(c for _, c in rest))] if rest else [])


def advice(reasons: Mapping[str, int]) -> Iterator[str]:
    """Yield advice on these reasons, where there is any."""
    joined = " ".join(reasons)
    return (f"→ {text}" for pattern, text in _ADVICE.items() if re.search(pattern, joined, re.IGNORECASE))
