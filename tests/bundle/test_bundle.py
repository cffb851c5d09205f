"""A bundle holds all that its results follow from, and nobody's name."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile

import pytest
import tomli_w
from PIL import Image

from evenedit import Results, load_results
from evenedit.api.study import Study
from evenedit.bundle.archive import SealedZip, withdraw_files, write_sealed
from evenedit.bundle.collect import Pseudonyms, collect_evidence
from evenedit.bundle.evidence_files import evidence_files, read_evidence
from evenedit.bundle.rescoring import rescore
from evenedit.bundle.scoring import rounded
from evenedit.bundle.study_facts import LICENCES, study_tables
from evenedit.bundle.verification import hold_pictures, verify
from evenedit.bundle.writer import make_bundle
from evenedit.comparison.compare import Side, compare
from evenedit.comparison.leaderboard import write_leaderboard
from evenedit.core.errors import EvenEditError
from evenedit.core.images import encode
from evenedit.core.records import Kind
from evenedit.ratings.digest import table_digest
from tests.support.bundles import KEY_PEM, PUBLIC, everything, run_everything
from tests.support.calls import KEY
from tests.support.studies import open_study, write_study

OFFLINE = """
import socket, sys
def refuse(*_, **__):
    raise OSError("the network is off")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from evenedit.cli import main
sys.argv = ["evenedit", *sys.argv[1:]]
main()
"""


def offline(folder, *arguments):
    """The command line in another folder, without a network."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONHASHSEED"}
    command = [sys.executable, "-c", OFFLINE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300)


def test_elsewhere_and_without_a_network_it_gives_the_same_bytes_again(audit, tmp_path):
    shutil.copy(audit, tmp_path / "theirs.zip")
    said = offline(tmp_path, "rescore", "theirs.zip", "--out", "again")
    assert (said.returncode, said.stderr) == (0, "")
    assert "identical" in said.stdout
    stated = SealedZip.open(audit).read("results.json")
    assert (tmp_path / "again/results.json").read_bytes() == stated
    told = json.loads((tmp_path / "again/rescore.json").read_text())
    assert told["identical"] and told["provenance"]["evenedit"] and told["replies_that_differ"] == []
    assert "command" in json.loads(stated)["provenance"], "the provenance is the bundle's"


def test_its_results_are_those_of_the_study_at_twelve_digits(planned, made):
    own, given = rounded(planned.results()), made.results
    assert own.estimates == given.estimates and own.findings == given.findings and own.measured == given.measured
    assert all(e.value == float(f"{e.value:.12g}") for e in given.estimates if e.value is not None)
    assert load_results(made.bundle.path) == Results.from_record(given)


def test_the_same_study_gives_the_same_bundle(planned, made, tmp_path):
    (tmp_path / "key.pem").write_text(KEY_PEM)
    again = make_bundle(planned, tmp_path / "again.zip", pictures="thumbnails", key=tmp_path / "key.pem")
    assert again.bundle.path.read_bytes() == made.bundle.path.read_bytes()


def test_other_rules_give_other_results_and_say_so(audit, tmp_path):
    (tmp_path / "rules.toml").write_text("[thresholds]\nskin_lighter = {at_least = 5}\n")
    found = rescore(audit, tmp_path / "out", str(tmp_path / "rules.toml"))
    assert not found.identical and found.other_rules
    assert any(line.startswith("estimates: ") and "numbers differ" in line for line in found.differences)
    for bad, wanted in (
        ("[editors]\na = 1\n", "is not a table of rules"),
        ("[thresholds]\nskin_lighter = 5\n", "skin_lighter"),
    ):
        (tmp_path / "rules.toml").write_text(bad)
        with pytest.raises(EvenEditError, match=wanted):
            rescore(audit, tmp_path / "out", str(tmp_path / "rules.toml"))


def test_a_reply_that_was_changed_changes_the_results_and_is_told(audit, tmp_path):
    bundle = SealedZip.open(audit)
    files = {name: bundle.read(name) for name in bundle.files}
    rows = [json.loads(line) for line in files["data/replies.jsonl"].decode().splitlines()]
    changed = next(row for row in rows if row["kind"] == "vlm" and row["status"] == "scored")
    answers = json.loads(changed["raw"])
    changed["raw"] = json.dumps(answers | {"skin_tone": 1 if answers["skin_tone"] != 1 else 5})
    files["data/replies.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    forged = write_sealed(tmp_path / "forged.zip", files, bundle.facts)
    assert not verify(forged.path).changes, "all its hashes were written anew"
    assert any(line.startswith("replies of simulated-judge-a") for line in verify(forged.path).problems())
    assert not verify(forged.path, key=PUBLIC).intact
    found = rescore(forged.path, tmp_path / "out")
    assert not found.identical and len(found.replies.differ) == 1
    assert changed["request_id"] in found.replies.differ[0]


def test_the_signature_belongs_to_the_root_and_to_its_key(audit, tmp_path):
    assert verify(audit, key=PUBLIC).intact
    assert list(verify(audit, key="00" * 32).problems()) == [f"not signed by the key you expect, {'00' * 32}"]
    bundle = SealedZip.open(audit)
    other = json.loads(bundle.read("signature.json")) | {"root": "0" * 64}
    contents = {name: bundle.read(name) for name in bundle.names}
    contents["signature.json"] = (json.dumps(other, indent=1) + "\n").encode()
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    assert any("signature does not belong" in line for line in verify(tmp_path / "x.zip").problems())


def test_pictures_that_somebody_presents_are_held_against_the_digests(planned, audit, tmp_path):
    image = next(iter(planned.store.sources().values())).image
    shutil.copy(planned.store.images.path(image), tmp_path / "one.png")
    held = verify(audit, pictures=tmp_path).pictures
    assert (held.known, held.unknown) == (1, ()) and held.absent > 10
    (tmp_path / "two.png").write_bytes(b"another")
    found = verify(audit, pictures=tmp_path)
    assert not found.intact and not list(found.faults()), "the bundle itself is"


def test_a_picture_is_known_in_the_file_that_its_owner_has(tmp_path):
    picture = Image.linear_gradient("L").convert("RGB")
    kept = json.dumps({"image": hashlib.sha256(encode(picture)).hexdigest()}).encode()
    bundle = write_sealed(tmp_path / "a.zip", {"data/sources.jsonl": kept, "data/edits.jsonl": b""})
    picture.save(tmp_path / "portrait.bmp")
    assert hold_pictures(bundle, tmp_path / "portrait.bmp").known == 1


def test_commands_take_a_bundle_where_they_take_results(evenedit, audit, tmp_path):
    said = evenedit("gate", audit, "--rule", "rate.soft_erasure <= 0.5")
    assert said.returncode in (0, 1, 3) and "rate.soft_erasure" in said.stdout
    assert write_leaderboard([load_results(audit)], tmp_path / "board").is_file()
    assert compare(Side.load(audit, None), Side.load(audit, "simulated-lightening"), tmp_path / "compare").is_file()
    (tmp_path / "bad.zip").write_bytes(audit.read_bytes()[:-1] + b"x")
    with pytest.raises(EvenEditError, match="was changed"):
        load_results(tmp_path / "bad.zip")


def test_a_folder_named_like_a_preset_is_no_file_of_rules(audit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "published").mkdir()
    assert rescore(audit, tmp_path / "out", "published").other_rules


def test_the_folder_of_an_analysis_is_refused_with_the_reason(evenedit, audit, tmp_path):
    (tmp_path / "results.json").write_bytes(SealedZip.open(audit).read("results.json"))
    said = evenedit("bundle", tmp_path, "--out", tmp_path / "a.zip")
    assert said.returncode == 2 and "holds results and no study" in said.stderr
    assert "a folder, not a bundle" in evenedit("verify", tmp_path).stderr


def test_pictures_need_a_licence(tmp_path):
    study = open_study(tmp_path, sources={"kind": "folder", "settings": {"path": "faces"}})
    with pytest.raises(EvenEditError, match="licence"):
        make_bundle(study, tmp_path / "a.zip", pictures="full")
    with pytest.raises(EvenEditError, match="nothing is edited yet"):
        make_bundle(study, tmp_path / "a.zip")


def test_no_secret_and_no_folder_of_a_machine_leaves_with_the_study_file(tmp_path):
    settings = {"path": "/home/somebody/private/faces"}
    study = Study.load(write_study(tmp_path, sources={"kind": "folder", "settings": settings}))
    told = json.dumps(study_tables(study))
    assert "somebody" not in told and "store" not in study_tables(study) and KEY not in told


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Study:
    return run_everything(everything(tmp_path_factory.mktemp("whole")))


def test_the_table_of_a_bundle_is_the_studys_whoever_rated(whole, tmp_path):
    evidence = collect_evidence(whole)
    bundle = write_sealed(tmp_path / "a.zip", evidence_files(evidence))
    table = whole.table()
    wanted = Pseudonyms.of(table).table(table)
    assert table_digest(read_evidence(bundle).table()) == table_digest(wanted)
    assert len(evidence.people) == 9 and {*wanted.kinds} == {Kind.VLM, Kind.INSTRUMENT, Kind.HUMAN, Kind.REVIEW}
    assert evidence.check_replies().from_raw > 100 and not evidence.check_replies().differ


def test_nobodys_name_words_or_id_is_in_it(whole):
    table = whole.table()
    named = {name for name, kind in zip(table.raters, table.kinds, strict=True) if kind in (Kind.HUMAN, Kind.REVIEW)}
    text = b"".join(evidence_files(collect_evidence(whole)).values()).decode()
    for secret in (*named, "zoe", "review:ada", "private note", "person-1-0"):
        assert secret not in text, secret


def test_without_people_nothing_of_theirs_is_in_it(whole):
    evidence = collect_evidence(whole, people=False)
    assert not evidence.people and not evidence.chances
    assert Kind.HUMAN not in evidence.table().kinds


def test_real_peoples_answers_wait_for_the_day_their_consent_names(whole, tmp_path):
    for day, wanted in (("", "states no date from which"), ("2999-01-01", "from 2999-01-01 on")):
        ethics = whole.file.sections.survey.ethics.model_copy(update={"published_from": day})
        section = whole.file.sections.survey.model_copy(update={"ethics": ethics})
        sections = whole.file.sections.model_copy(update={"survey": section})
        file = type(whole.file)(whole.file.folder, sections, whole.file.prompts, whole.file.wino)
        with pytest.raises(EvenEditError, match=wanted):
            make_bundle(Study(file, whole.store), tmp_path / "a.zip")


def test_who_withdraws_from_a_bundle_is_told_and_it_stays_intact(whole, tmp_path):
    beside = {"study.toml": tomli_w.dumps(study_tables(whole)).encode(), "data/measurements.jsonl": b""}
    bundle = write_sealed(tmp_path / "a.zip", evidence_files(collect_evidence(whole)) | beside)
    name = bundle.under("people")[0]
    left = withdraw_files(bundle, {name: "2026-11-17"}, tmp_path / "b.zip")
    found = verify(left.path, root=bundle.root)
    assert found.intact and len(found.changes.withdrawn) == 1
    assert len(read_evidence(left).people) == 8


def test_who_withdrew_from_the_study_before_is_told_too(whole, tmp_path):
    facts = json.dumps({"consent": {"withdrawn": 2}}).encode()
    beside = {"study.toml": tomli_w.dumps(study_tables(whole)).encode(), "data/measurements.jsonl": b""}
    bundle = write_sealed(tmp_path / "a.zip", evidence_files(collect_evidence(whole)) | beside | {LICENCES: facts})
    assert verify(bundle.path).left_before == 2
