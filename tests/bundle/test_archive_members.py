"""A sealed zip holds nothing beside its files, though its comment was written anew to fit."""

import struct
import zipfile
from pathlib import Path

import pytest

from evenedit.bundle import archive
from evenedit.bundle.archive import DIGITS, SealedZip, find_changes, write_sealed
from evenedit.bundle.archive_members import plain_info, unsafe_name
from evenedit.core.errors import EvenEditError

FILES = {"README.md": b"words\n" * 40, "data/é.jsonl": b"{}\n", "ratings.csv.gz": bytes(range(256))}
HIDDEN = b"hidden words"


@pytest.fixture
def sealed(tmp_path: Path) -> SealedZip:
    return write_sealed(tmp_path / "a.zip", FILES)


def with_comment(path: Path, content: bytes) -> Path:
    """The file with a comment that fits, as anybody can write it."""
    path.write_bytes(content)
    digest = archive._digest_before_comment(path)
    path.write_bytes(content[:-DIGITS] + digest.encode())
    return path


def packed_again(sealed: SealedZip, path: Path, **header: object) -> Path:
    """The same files in a zip whose headers differ."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = b"0" * DIGITS
        for name in sealed.names:
            about = plain_info(name)
            for key, value in header.items():
                setattr(about, key, value)
            archive.writestr(about, sealed.read(name))
    return with_comment(path, path.read_bytes())


def with_bytes_before_the_directory(whole: bytes, more: int) -> bytes:
    """Words between the last file and the directory; `more` of them are said to belong to the last file."""
    end = whole.rfind(b"PK\5\6")
    start = struct.unpack("<I", whole[end + 16 : end + 20])[0]
    last, local = whole.rfind(b"PK\1\2"), whole.rfind(b"PK\3\4")
    changed = bytearray(whole)
    for at in (last + 20, local + 18):
        changed[at : at + 4] = struct.pack("<I", struct.unpack("<I", whole[at : at + 4])[0] + more)
    changed[end + 16 : end + 20] = struct.pack("<I", start + len(HIDDEN))
    return bytes(changed[:start]) + HIDDEN + bytes(changed[start:])


def test_as_it_was_written_nothing_is_beside_its_files(sealed, tmp_path):
    assert not find_changes(sealed.path)
    assert not find_changes(packed_again(sealed, tmp_path / "b.zip")), "the comment fits, and nothing is hidden"


@pytest.mark.parametrize(
    "header",
    [
        {"external_attr": 0o120777 << 16},
        {"external_attr": 0o755 << 16},
        {"comment": HIDDEN},
        {"extra": struct.pack("<HH", 0x9999, len(HIDDEN)) + HIDDEN},
        {"date_time": (2020, 1, 1, 0, 0, 0)},
    ],
    ids=["a link", "a program", "a comment", "a further field", "a date"],
)
def test_headers_that_hold_more_are_told(sealed, tmp_path, header):
    changes = find_changes(packed_again(sealed, tmp_path / "b.zip", **header))
    assert "has unexpected content: the header of manifest.json" in changes.container


@pytest.mark.parametrize("more", [0, len(HIDDEN)], ids=["between", "after the packed stream"])
def test_words_around_the_files_are_told(tmp_path, more):
    packed = write_sealed(tmp_path / "a.zip", {"README.md": FILES["README.md"]})
    forged = with_comment(tmp_path / "b.zip", with_bytes_before_the_directory(packed.path.read_bytes(), more))
    assert zipfile.ZipFile(forged).testzip() is None, "another reader sees nothing"
    assert find_changes(forged)
    before = with_comment(tmp_path / "c.zip", b"#!/bin/sh\n" + packed.path.read_bytes())
    assert "bytes before manifest.json" in find_changes(before).container


@pytest.mark.parametrize(
    "name", ["report/../../out.html", "/tmp/out.html", "C:/out.html", "report\\..\\out.html", "report/", "readme.MD"]
)
def test_a_name_that_leads_out_of_the_folder_or_is_another_ones_is_refused(tmp_path, name):
    with pytest.raises(EvenEditError, match="is not a valid file name"):
        write_sealed(tmp_path / "a.zip", {**FILES, name: b"evil"})
    assert find_changes(tmp_path / "a.zip").container, "whoever wrote it"


def test_names_of_people_and_letters_of_all_languages_are_names():
    assert unsafe_name([*FILES, "report/tables/주름.csv", "people/person-0001.jsonl"]) == ""
    assert unsafe_name(["e\u0301.csv", "\u00e9.csv"]) == "e\u0301.csv", "one file on some machines"


def test_a_file_that_unpacks_to_more_than_is_listed_is_not_unpacked_whole(sealed, tmp_path, monkeypatch):
    contents = {name: sealed.read(name) for name in sealed.names} | {"README.md": b"\0" * 50_000_000}
    forged = archive._pack(tmp_path / "b.zip", contents)
    assert find_changes(forged.path).changed == ("README.md",)
    monkeypatch.setattr(archive, "MOST", 10)
    assert "larger than allowed in a bundle" in find_changes(sealed.path).container
