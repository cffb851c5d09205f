"""What a blind judge must not be told, and where to look for it."""

import re
from collections.abc import Iterator

BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{200,}={0,2}")
LABELS = re.compile(rb"\bblack\b|white|asian|indian|latino|eastern|70 ?plus|70s|\d0s\b", re.I)
GENDERS = re.compile(rb"\bmale\b|female|\bwom[ae]n\b|\bm[ae]n\b", re.I)
CONDITIONS = re.compile(rb"baseline|null.?pair|feature_prompt|placebo|swapped|mitigat|maintain", re.I)


def words(body: bytes) -> bytes:
    return BASE64.sub(b"", body)


def chunks(png: bytes) -> Iterator[bytes]:
    at = 8
    while at < len(png):
        yield png[at + 4 : at + 8]
        at += 12 + int.from_bytes(png[at : at + 4], "big")
