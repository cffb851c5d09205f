"""Makes a release from a clean checkout: checks, tags, builds the wheel, tries it, writes its bill of materials.

    python scripts/release.py 0.3.0            says what it would do, and checks all that can be checked
    python scripts/release.py 0.3.0 --tag      does it; what is left by hand is to push the tag and upload dist/

Nothing is pushed or uploaded here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
VERSION = ROOT / "src/evenedit/core/version.py"


def problems(version: str) -> list[str]:
    """What stands in the way of this release."""
    found = []
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        found.append(f"'{version}' is no version; write 1.2.3")
    if f'"{version}"' not in VERSION.read_text("utf-8"):
        found.append(f"{VERSION.relative_to(ROOT)} does not say {version}")
    if not re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE):
        found.append(f"CHANGELOG.md has no section '## {version}'")
    if f"version: {version}" not in (ROOT / "CITATION.cff").read_text("utf-8"):
        found.append(f"CITATION.cff does not say version: {version}")
    if said("git", "status", "--porcelain"):
        found.append("the checkout has changes that are not committed")
    if said("git", "tag", "--list", f"v{version}"):
        found.append(f"the tag v{version} is there already")
    return found


def said(*command: str) -> str:
    """What a command prints; it is an error if it fails."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def built(folder: Path) -> Path:
    """Build the wheel into a folder."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", str(folder)], cwd=ROOT, check=True
    )
    return next(folder.glob("evenedit-*.whl"))


def checked(wheel: Path, version: str) -> None:
    """Unpack the wheel elsewhere, import it from there with this environment's libraries, and ask for its version."""
    with tempfile.TemporaryDirectory() as place:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(Path(place) / "wheel")
        where = str(Path(place) / "wheel")
        code = f"import sys; sys.path.insert(0, {where!r}); import evenedit; print(evenedit.__version__)"
        answer = subprocess.run(
            [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, cwd=place
        )
    if answer.stdout.strip() != version:
        raise SystemExit(f"the wheel says it is {answer.stdout.strip()}, not {version}")


def bill_of_materials(version: str, wheel: Path) -> dict[str, object]:
    """CycloneDX 1.5: the wheel and every library that it asks for, as installed here, with their licences."""
    libraries = needed([Requirement(line) for line in _project()["dependencies"]])
    parts = [
        {
            "type": "library",
            "name": name,
            "version": library.version,
            "purl": f"pkg:pypi/{name}@{library.version}",
            **({"licenses": [{"license": {"name": licence[:200]}}]} if (licence := licence_of(library)) else {}),
        }
        for name, library in sorted(libraries.items())
    ]
    digest = {"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}
    main = {"type": "application", "name": "evenedit", "version": version, "hashes": [digest]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": main},
        "components": parts,
    }


def _project() -> dict[str, list[str]]:
    project: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return project


def needed(wanted: list[Requirement]) -> dict[str, Distribution]:
    """These libraries and all that they ask for in turn on this machine; one that is not installed is an error."""
    found: dict[str, Distribution] = {}
    asked: set[tuple[str, str]] = set()
    waiting = [(one, "") for one in wanted]
    while waiting:
        one, extra = waiting.pop()
        if one.marker is not None and not one.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(one.name)
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            raise SystemExit(f"{one} is asked for and not installed here: install the package first") from None
        for own in {"", *one.extras}:
            if (name, own) not in asked:
                asked.add((name, own))
                waiting += [(Requirement(line), own) for line in found[name].requires or []]
    return found


def licence_of(library: Distribution) -> str:
    """The licence as the library's metadata name it; empty where they do not."""
    about = library.metadata
    stated = about.get("License-Expression") or (about.get("License") or "").split("\n")[0]
    classified = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or [] if "License ::" in line]
    return stated or ", ".join(classified)


def main() -> None:
    """Check, and with --tag build and tag."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--tag", action="store_true", help="build and tag, where nothing stands in the way")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    given = parser.parse_args()
    found = problems(given.version)
    for line in found:
        print(f"not ready: {line}")
    if found:
        raise SystemExit(1)
    if not given.tag:
        print(f"ready: --tag builds into {given.out} and tags v{given.version}")
        return
    wheel = built(given.out)
    checked(wheel, given.version)
    bill = given.out / f"evenedit-{given.version}.cdx.json"
    bill.write_text(json.dumps(bill_of_materials(given.version, wheel), indent=1) + "\n", "utf-8")
    said("git", "tag", "--annotate", f"v{given.version}", "--message", f"EvenEdit {given.version}")
    print(f"{wheel}\n{bill}\ntagged v{given.version}; push the tag and upload the files by hand")


if __name__ == "__main__":
    main()
