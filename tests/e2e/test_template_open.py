"""The template `open` from the plan to the bundle, with simulated people, at the size of a test."""

import json
from pathlib import Path

from evenedit.config import templates
from tests.support.commands import run_here

SMALL = {
    "sources": {"settings": {"size": 96, "only": {"race": ["White", "Indian"], "age": ["20s", "70plus"]}}},
    "prompts": {"include": ["O-01", "V-02"]},
    "statistics": {"draws": 100, "permutations": 99},
    "survey": {"cases": 4, "raters_per_item": 1, "items_per_task": 2, "simulated_people": 2},
}


def test_the_template_open_runs_from_the_plan_to_the_bundle(tmp_path: Path) -> None:
    folder, bundle = tmp_path / "S", tmp_path / "S.zip"
    templates.write("open", folder, changes=SMALL)
    for words in (
        ("plan", folder),
        ("run", folder),
        ("survey", "rehearse", folder),
        ("report", folder),
        ("gate", folder, "--rule", "rate.hair_changed <= 1", "--rule", "flow.race_seen[Indian>White] <= 1"),
        ("bundle", folder, "--out", bundle),
        ("verify", bundle),
        ("rescore", bundle, "--out", tmp_path / "again"),
    ):
        done = run_here(*words)
        assert done.returncode == 0, f"{words[0]}: {done.stdout}{done.stderr}"
    results = json.loads((folder / "report" / "results.json").read_text("utf-8"))
    assert {"hair_change", "expression", "race_before"} <= {question["id"] for question in results["rubric"]}
    assert any(row["axis"] == "expression" for row in results["agreement"])
    assert (folder / "report" / "vlm_human_agreement.json").is_file()
