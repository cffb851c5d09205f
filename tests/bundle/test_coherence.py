"""Whoever writes all hashes of a bundle anew must still make its files fit one another."""

import json
import tomllib
from pathlib import Path

import pytest
import tomli_w

from evenedit.bundle.archive import SealedZip, write_sealed
from evenedit.bundle.rescoring import rescore
from evenedit.bundle.verification import verify


def rows(content: bytes) -> list[dict]:
    return [json.loads(line) for line in content.decode().splitlines()]


def lines(found: list[dict]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in found).encode()


def forge(audit: Path, target: Path, **changes) -> SealedZip:
    """The bundle with some files changed or left out (None), and every hash written anew."""
    bundle = SealedZip.open(audit)
    files = {name: bundle.read(name) for name in bundle.files}
    for name, change in changes.items():
        files[name] = change(files[name]) if callable(change) else change
    return write_sealed(target, {name: content for name, content in files.items() if content is not None}, bundle.facts)


def without_first_case(name: str, audit: Path):
    first = rows(SealedZip.open(audit).read("data/requests.jsonl"))[0]["id"]
    return lambda content: lines([row for row in rows(content) if first not in (row.get("id"), row.get("request_id"))])


def other_threshold(content: bytes) -> bytes:
    body = json.loads(content)
    body["rules"]["rates"]["skin_lighter"]["at_least"] = 5
    return json.dumps(body).encode()


def other_prompt(content: bytes) -> bytes:
    body = json.loads(content)
    body["prompts"][-1]["text"] = "Leave everything as it is."
    return json.dumps(body).encode()


def all_alike(content: bytes) -> bytes:
    found = rows(content)
    for row in found:
        if row["kind"] == "vlm" and row["status"] == "scored":
            row["raw"] = json.dumps(json.loads(row["raw"]) | {"skin_tone": 3})
            row["values"]["skin_tone"] = 3
    return lines(found)


def labels_exchanged(content: bytes) -> bytes:
    found = rows(content)
    found[0]["attributes"], found[-1]["attributes"] = found[-1]["attributes"], found[0]["attributes"]
    return lines(found)


def fewer_draws(content: bytes) -> bytes:
    body = tomllib.loads(content.decode())
    body["statistics"]["draws"] = 150
    return tomli_w.dumps(body).encode()


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"study.json": other_threshold}, "study.json: its rules differ from study.toml"),
        ({"study.toml": fewer_draws}, "plan.json: its statistics differ from study.toml"),
        ({"study.json": other_prompt}, "differs from the instructions sent to editors"),
        ({"data/sources.jsonl": labels_exchanged}, "plan.json: its portraits differ from data/sources.jsonl"),
        ({"data/edits.jsonl": lambda c: c.split(b"\n", 1)[1]}, "planned edits are missing, and it does not say so"),
        ({"data/replies.jsonl": all_alike}, "changed since the last run, according to the study's history"),
        ({"seal.json": None, "plan.json": None}, "seal.json is missing: the study's history has the seal"),
        ({"history.jsonl": lambda c: c.rsplit(b"\n", 2)[0] + b"\n"}, "no line for the end of its last run"),
        ({f"pictures/{'0' * 64}.png": b"another"}, "its bytes do not match its name"),
    ],
)
def test_what_contradicts_the_seal_the_history_or_the_study_file_is_told(audit, tmp_path, changes, wanted):
    forged = forge(audit, tmp_path / "forged.zip", **changes)
    assert any(wanted in line for line in verify(forged.path).problems())


def test_a_case_that_is_dropped_everywhere_is_told_by_the_plan_and_the_history(audit, tmp_path):
    names = [f"data/{name}.jsonl" for name in ("requests", "edits", "replies", "readings", "measurements")]
    forged = forge(audit, tmp_path / "forged.zip", **{name: without_first_case(name, audit) for name in names})
    told = list(verify(forged.path).problems())
    assert any("its requests differ from data/requests.jsonl" in line for line in told)
    assert "requests: changed since the last run, according to the study's history" in told


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("environment.json", lambda c: c.replace(b'"evenedit": "', b'"evenedit": "9.'), "environment.json"),
        ("report/results.json", lambda c: c.replace(b'"value":', b'"value": ', 1), "report/results.json"),
        ("study.json", lambda c: c.replace(b"Skin tone", b"Tone"), "study.json (the words of skin_tone)"),
    ],
)
def test_files_that_do_not_say_what_the_results_say_are_named(audit, tmp_path, name, change, told):
    forged = forge(audit, tmp_path / "forged.zip", **{name: change})
    assert told in rescore(forged.path, tmp_path / "out").untrue


def test_an_untouched_bundle_contradicts_nothing(audit, tmp_path):
    found = verify(audit)
    assert found.intact and not found.notes and not found.plan
    assert rescore(audit, tmp_path / "out").untrue == ()


def test_the_seal_is_held_against_the_one_that_was_published(audit):
    seal = verify(audit).seal
    assert verify(audit, seal=seal.upper()).intact
    assert list(verify(audit, seal="0" * 64).problems()) == [f"another plan: its seal is {seal}, you expect {'0' * 64}"]


def test_under_other_rules_no_finding_is_called_confirmatory(audit, tmp_path):
    rescore(audit, tmp_path / "own")
    rescore(audit, tmp_path / "others", "published")
    own, others = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("own", "others"))
    assert any(finding["standing"] == "confirmatory" for finding in own["findings"])
    assert not any(finding["standing"] == "confirmatory" for finding in others["findings"])
    assert others["preregistration"]["changes"][-1]["what"] == "rules of this scoring"
