"""Fetching the model that reads age: one package by name from the npm registry, two files of it, checked."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from evenedit.core.errors import EvenEditError
from evenedit.core.images import write_whole
from evenedit.instruments.age_model import COMMAND, DIGESTS, model_folder, ready

PACKAGE, PACKAGE_VERSION = "@vladmandic/human", "3.3.6"
TERMS = (
    "The model comes from HSE_FaceRec_tf (Apache-2.0), as packaged in "
    f"{PACKAGE} {PACKAGE_VERSION} (MIT). It was trained on VGGFace2 and on faces of IMDb, data sets with terms of "
    "their own; docs/instruments.md tells what was read. It is fetched for you and is no part of EvenEdit."
)
PATIENCE = 600
"""Seconds that fetching may take."""


def setup(package: Path | None = None) -> Path:
    """Put the model's files in the user's cache, from the registry or a package at hand; returns the folder."""
    folder = model_folder()
    if ready():
        return folder
    with tempfile.TemporaryDirectory() as place:
        contents = _unpack(package or _fetch(Path(place)))
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(folder / name, content)
    return folder


def _fetch(place: Path) -> Path:
    """Fetch the package's file with npm."""
    npm = shutil.which("npm")
    package = f"{PACKAGE}@{PACKAGE_VERSION}"
    if npm is None:
        raise EvenEditError(
            f"npm is not installed, which fetches {package}",
            f"Install Node.js with npm; or fetch the package elsewhere by npm pack {package}",
            f"and run: {COMMAND} --set package=FILE",
        )
    try:
        subprocess.run(
            [npm, "pack", package, "--silent"], cwd=place, check=True, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise EvenEditError(f"npm pack {package} did not end within {PATIENCE} seconds; try again") from None
    except (OSError, subprocess.CalledProcessError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        raise EvenEditError(f"npm pack {package} failed: {lines[-1] if lines else 'no message'}") from None
    archives = sorted(place.glob("*.tgz"))
    if not archives:
        raise EvenEditError(f"npm pack {package} wrote no package")
    return archives[0]


def _unpack(package: Path) -> dict[str, bytes]:
    """Return the model's two files after checking their digests."""
    try:
        with tarfile.open(package) as archive:
            contents = {name: _member(archive, f"package/models/{name}") for name in DIGESTS}
    except (OSError, tarfile.TarError, KeyError) as error:
        raise EvenEditError(f"{package} is not the package {PACKAGE} {PACKAGE_VERSION}: {error}") from None
    for name, content in contents.items():
        digest = hashlib.sha256(content).hexdigest()
        if digest != DIGESTS[name]:
            raise EvenEditError(
                f"{name} in {package.name} has the sha256 {digest}; {DIGESTS[name]} was validated, so it is not used"
            )
    return contents


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(name)
    return file.read()
