"""A sealed zip tells every change of its bytes and of its files."""

import json
import random
import zipfile
from pathlib import Path

import pytest

from evenedit.bundle.archive import (
    MANIFEST,
    WITHDRAWN,
    SealedZip,
    _pack,
    find_changes,
    tombstones,
    withdraw_files,
    write_sealed,
)
from evenedit.core.errors import EvenEditError

FILES = {
    "results.json": b'{"a": 1}\n' * 30,
    "ratings.csv.gz": bytes(range(256)),
    "people/person-0001.jsonl": b'{"value": 3}\n',
    "people/person-0002.jsonl": b'{"value": 4}\n',
}


@pytest.fixture
def sealed(tmp_path: Path) -> SealedZip:
    return write_sealed(tmp_path / "a.zip", FILES, {"title": "A"})


def test_what_was_written_is_intact_and_the_same_content_gives_the_same_bytes(sealed, tmp_path):
    assert not sealed.changes()
    again = write_sealed(tmp_path / "b.zip", dict(reversed(FILES.items())), {"title": "A"})
    assert again.path.read_bytes() == sealed.path.read_bytes()
    assert zipfile.ZipFile(sealed.path).testzip() is None, "any other program can open it"
    other = write_sealed(tmp_path / "c.zip", FILES, {"title": "B"})
    assert other.root != sealed.root, "the root covers what the manifest says beside its files"


def test_every_change_of_one_byte_is_found(sealed, tmp_path):
    whole, rng = sealed.path.read_bytes(), random.Random(1)
    copy = tmp_path / "changed.zip"
    for at in rng.sample(range(len(whole)), 300):
        copy.write_bytes(whole[:at] + bytes([whole[at] ^ rng.randrange(1, 256)]) + whole[at + 1 :])
        assert find_changes(copy), f"byte {at} of {len(whole)}"


def test_every_insertion_and_removal_is_found(sealed, tmp_path):
    whole, rng = sealed.path.read_bytes(), random.Random(2)
    copy = tmp_path / "changed.zip"
    for _ in range(60):
        at, length = rng.randrange(len(whole)), rng.randrange(1, 40)
        copy.write_bytes(whole[:at] + rng.randbytes(length) + whole[at:])
        assert find_changes(copy)
        copy.write_bytes(whole[:at] + whole[at + length :])
        assert find_changes(copy)


def rewritten(sealed: SealedZip, target: Path, **changes: bytes | None) -> Path:
    """A zip with other files in it, as somebody makes it who does not know of the comment."""
    contents = {name: sealed.read(name) for name in sealed.names} | changes
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in contents.items():
            if content is not None:
                archive.writestr(name, content)
    return target


def test_changed_added_and_removed_files_are_named(sealed, tmp_path):
    path = rewritten(sealed, tmp_path / "x.zip", **{"results.json": b"{}", "more.txt": b"x", "ratings.csv.gz": None})
    found = find_changes(path)
    assert (found.changed, found.added, found.removed) == (("results.json",), ("more.txt",), ("ratings.csv.gz",))
    assert list(found.lines())[:3] == ["changed: results.json", "added: more.txt", "removed: ratings.csv.gz"]


def test_a_manifest_that_was_written_to_fit_has_another_root(sealed, tmp_path):
    forged = write_sealed(tmp_path / "forged.zip", FILES | {"results.json": b"{}"}, {"title": "A"})
    assert not forged.changes() and forged.root != sealed.root
    body = json.loads(forged.read(MANIFEST)) | {"root": sealed.root}
    path = rewritten(forged, tmp_path / "x.zip", **{MANIFEST: json.dumps(body, indent=1).encode()})
    assert "root does not belong" in find_changes(path).container


def test_who_withdraws_leaves_a_tombstone_and_the_root_stays(sealed, tmp_path):
    left = withdraw_files(sealed, {"people/person-0001.jsonl": "2026-11-17"}, tmp_path / "b.zip")
    assert (left.root, bool(left.changes()), left.changes().withdrawn) == (
        sealed.root,
        False,
        ("people/person-0001.jsonl",),
    )
    assert "people/person-0001.jsonl" not in left.names
    both = withdraw_files(left, {"people/person-0002.jsonl": "2026-11-18"}, tmp_path / "c.zip")
    assert len(both.changes().withdrawn) == 2


def test_only_what_a_person_answered_can_be_withdrawn(sealed, tmp_path):
    with pytest.raises(EvenEditError, match="cannot be withdrawn"):
        withdraw_files(sealed, {"results.json": "2026-11-17"}, tmp_path / "b.zip")
    told = json.dumps({"files": {"results.json": "2026-11-17"}}).encode()
    path = rewritten(sealed, tmp_path / "x.zip", **{"results.json": None, "withdrawn.json": told})
    assert find_changes(path).removed == ("results.json",)


def test_another_zip_and_no_file_are_told(tmp_path):
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(EvenEditError, match="cannot be read as a bundle"):
        SealedZip.open(tmp_path / "other.zip")
    with pytest.raises(EvenEditError, match="no such file"):
        find_changes(tmp_path / "none.zip")


@pytest.mark.parametrize("named", ["results.json", "people/person-0001.jsonl", "people/person-0009.jsonl"])
def test_a_tombstone_of_what_is_still_there_or_never_was_is_told(sealed, tmp_path, named):
    contents = {name: sealed.read(name) for name in sealed.names}
    forged = _pack(tmp_path / "b.zip", {**contents, WITHDRAWN: tombstones({named: "2026-11-17"})})
    assert find_changes(forged.path).container.startswith(WITHDRAWN)
