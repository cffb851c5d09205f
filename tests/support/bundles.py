"""Studies to bundle: one that has everything, made once for all tests that only read it."""

import tomllib
from pathlib import Path
from typing import Any

from evenedit.api.study import Study
from evenedit.cases.review_queue import ReviewQueue
from evenedit.config import templates
from evenedit.study.preregistration.seal import seal_study
from tests.support.reviewing import settle
from tests.support.studies import toml, write_study
from tests.support.surveys import finish, open_service

CARELESS = {"seed": 2, "error": 0.4, "unparseable": 0.3, "refusal": 0.1}


def everything(folder: Path, **changes: Any) -> Study:
    """Diagnosis, mitigation, stereotypes, judges, instruments, nine people and two reviewers, of few faces."""

    path = templates.write("demo", folder)
    table = tomllib.loads(path.read_text("utf-8"))
    faces = {"race": ["White", "Black"], "age": ["20s", "70plus"]}
    table |= {
        "sources": {"kind": "drawn", "settings": {"seed": 1, "size": 64, "only": faces}},
        "prompts": {"include": ["O-01", "V-05"]},
        "experiments": {
            "diagnosis": {"floor": True},
            "mitigation": {"cases": 12, "choose": "drift", "pairwise": True, "extractor": {"kind": "simulated"}},
            "stereotype": {"include": ["W-01", "W-02", "W-26"]},
        },
        "judges": [
            {"id": "simulated-judge-a", "kind": "simulated", "settings": {"seed": 1, "error": 0.4, "missing": 0.1}},
            {"id": "simulated-judge-b", "kind": "simulated", "settings": CARELESS},
        ],
        "ensemble": {"review": "settles", "reviewers": 2},
        "survey": {
            "surveys": [1, 2, 3],
            "cases": 8,
            "items_per_task": 4,
            "exclude": {"gold_below": 0.0},
            "simulated_people": 0,
            "ethics": {"published_from": "2026-01-01", "protocol": "exempt: a test"},
        },
        "statistics": {"draws": 100, "permutations": 99},
        "executor": {"workers": 2},
    }
    path.write_text(toml(table | changes), "utf-8")
    return Study.load(folder)


def run_everything(study: Study) -> Study:
    """Run it, let people answer and reviewers settle."""
    study.run()
    service = open_service(study)
    for number in range(3):
        for survey in (1, 2, 3):
            finish(service, f"person-{survey}-{number}", survey)
    queue = ReviewQueue(study)
    for ident in list(queue.cases)[:3]:
        settle(queue, "review:zoe", ident, note="a private note of zoe")
        settle(queue, "review:ada", ident, note="a private note of ada")
    return study


SEALED: dict[str, Any] = {
    "hypotheses": [
        {"rule": "gap.skin_lighter.race <= 0.2", "why": "lightening was seen in another editor"},
        {"rule": "shift.skin_tone <= 0.1"},
    ],
    "instruments": [{"id": "skin", "kind": "skin"}],
    "statistics": {"draws": 100, "permutations": 99},
}


def sealed_study(folder: Path, **changes: Any) -> Study:
    """A small study that was sealed and then run."""
    study = Study.load(write_study(folder, **changes))
    seal_study(study)
    study.run()
    return study


KEY_PEM = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
"""
"""The private key of the first example of RFC 8032: everybody has it."""
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
