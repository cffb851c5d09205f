"""A finding's pack makes its cases again."""

import json
import subprocess
import sys

import numpy as np
import pytest

from evenedit.api.study import Study
from evenedit.comparison.reproduction import write_pack
from evenedit.core.errors import EvenEditError
from evenedit.core.images import read_image
from evenedit.report.text.findings import described
from tests.support.studies import write_study

FACES = {"kind": "drawn", "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"]}}}
LIGHTENING = {"id": "simulated-lightening", "settings": {"rate": 0.9, "groups": {"race": ["Black"]}}}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pack") / "study"
    write_study(folder, sources=FACES, editors=[LIGHTENING], statistics={"draws": 200, "permutations": 99})
    loaded = Study.load(folder)
    loaded.run()
    return loaded


def test_the_script_makes_the_same_pictures_again(study, tmp_path):
    results = study.results()
    finding = next(f for f in results.findings if f.measure == "gap.skin_lighter" and f.factor == "race")
    page = write_pack(study.folder, results, finding, tmp_path / "pack")
    text = page.read_text("utf-8")
    assert finding.text in text and "SIMULATED" in text and "python reproduce.py" in text
    rows = json.loads((tmp_path / "pack" / "requests.json").read_text("utf-8"))
    assert [row["request_id"] for row in rows] == list(finding.cases)
    assert all(row["labels"][0]["race"] == "Black" and row["seed"] and row["instruction"] for row in rows)
    subprocess.run([sys.executable, tmp_path / "pack" / "reproduce.py"], check=True, timeout=120)
    for row in rows:
        folder = tmp_path / "pack" / row["folder"]
        again, output = (np.asarray(read_image(folder / name).convert("RGB")) for name in ("again.png", "output.png"))
        assert (again == output).all()
    with pytest.raises(EvenEditError, match="is not empty"):
        write_pack(study.folder, results, finding, tmp_path / "pack")


def test_one_finding_is_told_with_what_carries_it(study):
    results = study.results()
    finding = next(f for f in results.findings if f.cases)
    text = "\n".join(described(results, finding))
    assert "adjusted p" in text and "prompts that carry it" in text and finding.cases[0] in text


def test_what_cannot_be_reproduced_says_why(study, tmp_path):
    results = study.results()
    nothing = next(f for f in results.findings if not f.cases)
    with pytest.raises(EvenEditError, match="no cases to reproduce"):
        write_pack(study.folder, results, nothing, tmp_path / "pack")
    with pytest.raises(EvenEditError, match="results without pictures"):
        write_pack(tmp_path / "results.json", results, results.findings[0], tmp_path / "pack")


def test_the_command_lists_findings_and_names_what_is_wrong(evenedit, study):
    listed = evenedit("findings", study.folder)
    assert listed.returncode == 0 and "SIMULATED" in listed.stdout, listed.stderr
    assert "1. [clear to the judges] simulated-lightening: " in listed.stdout
    wrong = evenedit("findings", study.folder, "--id", "999")
    assert wrong.returncode == 2 and "there is no finding '999'; use a number from 1 to" in wrong.stderr
