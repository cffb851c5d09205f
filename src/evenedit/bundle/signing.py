"""Ed25519 signatures of a root: who has the key vouches for the whole content.

A chain of hashes alone does not protect against its author, who can rewrite the bundle with all hashes. A signature
binds the root to a key. A root that was published before (a preregistration, a preprint, a public commit) binds it to
a date.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenedit.bundle.archive import SIGNATURE, SealedZip
from evenedit.core.errors import EvenEditError

ALGORITHM = "ed25519"
CONTEXT = b"evenedit root "
"""Stands before what is signed, so that a signature of something else cannot be passed off as one of a root."""


@dataclass(frozen=True, slots=True)
class Signed:
    """How a signature stands to its root."""

    public_key: str
    """The key in hex."""
    valid: bool

    def __str__(self) -> str:
        if not self.valid:
            return f"the signature does not belong to this content (key {self.public_key[:16]}…)"
        return f"signed by the holder of key {self.public_key}; confirm the owner of the key from an independent source"


def sign_root(root: str, key: Path) -> bytes:
    """Return the signature file of a root, made with an Ed25519 private key in PEM."""
    private = _private(key)
    body = {
        "algorithm": ALGORITHM,
        "root": root,
        "public_key": private.public_key().public_bytes_raw().hex(),
        "signature": private.sign(CONTEXT + root.encode()).hex(),
    }
    return (json.dumps(body, indent=1) + "\n").encode()


def signature_of(bundle: SealedZip) -> Signed | None:
    """Check the signature of a bundle; None where it has none."""
    if SIGNATURE not in bundle.names:
        return None
    return check_signature(bundle.read(SIGNATURE), bundle.root)


def check_signature(content: bytes, root: str) -> Signed:
    """Check a signature file against a root."""
    ed25519 = _library()
    from cryptography.exceptions import InvalidSignature

    try:
        body = json.loads(content)
        named = str(body["public_key"])
        public = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(named))
        public.verify(bytes.fromhex(body["signature"]), CONTEXT + root.encode())
        same = body["root"] == root and body["algorithm"] == ALGORITHM
        return Signed(named, same and content == (json.dumps(body, indent=1) + "\n").encode())
    except (InvalidSignature, ValueError, KeyError, TypeError):
        return Signed(_named(content), valid=False)


def _named(content: bytes) -> str:
    try:
        return str(json.loads(content)["public_key"])
    except (ValueError, KeyError, TypeError):
        return "unknown"


def _private(key: Path) -> Any:
    ed25519 = _library()
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    make = "make one with: openssl genpkey -algorithm ed25519 -out key.pem"
    if not key.is_file():
        raise EvenEditError(f"{key}: there is no such file; {make}")
    try:
        private = load_pem_private_key(key.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise EvenEditError(f"{key} is not a private key in PEM without a password ({error}); {make}") from None
    if not isinstance(private, ed25519.Ed25519PrivateKey):
        raise EvenEditError(f"{key} is not an Ed25519 key; {make}")
    return private


def _library() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise EvenEditError("signatures need a further package: pip install 'evenedit[sign]'") from None
    return ed25519
