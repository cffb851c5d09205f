"""A small version of `python -m proofs texts`; and the checker is checked."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from proofs.text_caveats import caveat_problems
from proofs.text_claims import finding_problems, read
from proofs.text_designs import design
from proofs.text_facts import Facts
from proofs.text_methods import METHODS
from proofs.text_paragraphs import check, split
from proofs.text_people import PEOPLE
from proofs.text_summary import SUMMARY

from evenedit.report.render.index import Index
from evenedit.report.text.methods import texts_for_reuse
from evenedit.report.text.summary import summarise
from evenedit.results.results import Finding

DETAILED = (4, 13, 31)
"""Studies whose texts have much to say: judges, instruments, people, several editors."""


@pytest.mark.parametrize("seed", range(500, 512))
def test_every_sentence_of_a_random_study_is_true(seed: int) -> None:
    problems, sentences = check(design(seed))
    assert problems == []
    assert sentences > 5


FOUND_FALSE = (180_006, 181_033, 181_072, 182_015)
"""Studies whose texts were once false: a table that was not there, prompts and judges that were miscounted."""


@pytest.mark.parametrize("seed", FOUND_FALSE)
def test_what_was_once_false_is_true(seed: int) -> None:
    assert check(design(seed))[0] == []


def tampered(text: str) -> Iterator[str]:
    """The sentence with each of its numbers changed in turn; words with digits, such as prompt ids, stay."""
    for m in re.finditer(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?![\w.]*\w)", text):
        number = m[0].replace(",", "")
        places = len(number.partition(".")[2])
        changed = f"{float(number) + 3:.{places}f}" if places else str(int(number) + 3)
        yield text[: m.start()] + changed + text[m.end() :]


@pytest.mark.parametrize("seed", DETAILED)
def test_a_changed_number_is_noticed(seed: int) -> None:
    made = design(seed)
    results = made.results()
    facts, index = Facts(made, results), Index(results)
    texts = {path: text for path, (_, text) in texts_for_reuse(index, made.study).items()}
    said = [(s, METHODS) for s in split(texts["methods.md"])]
    said += [(s, PEOPLE) for s in split(texts.get("human-evaluation.md", "")) if not s.startswith("Brackets")]
    said += [(s.text, SUMMARY) for s in summarise(index)]
    told = [(text, changed, bool(read(changed, claims, facts))) for text, claims in said for changed in tampered(text)]
    told += [
        (f.text, changed, bool(_about(f, changed, facts))) for f in results.findings for changed in tampered(f.text)
    ]
    told += [
        (text, changed, bool(caveat_problems(replace(f, caveats=(changed,)), facts)))
        for f in results.findings
        for text in f.caveats
        for changed in tampered(text)
    ]
    missed = [changed for _, changed, noticed in told if not noticed]
    assert len(told) > 50
    assert len(missed) <= 0.1 * len(told), missed


def _about(finding: Finding, text: str, facts: Facts) -> list[str]:
    return finding_problems(replace(finding, text=text), facts)


@pytest.mark.parametrize(
    "lie",
    [
        "We edited 9 portraits, balanced over 2 race labels × 2 gender labels × 5 age labels.",
        "The edits start from 9 diverse portraits.",
        "Each output was rated on five-point scales by judge-1.",
        "Rates are shares of valid scores: race change ≥2.",
        "All editors treat every face the same.",
    ],
)
def test_a_sentence_that_is_not_so_is_refused(lie: str) -> None:
    made = design(DETAILED[0])
    assert read(lie, METHODS, Facts(made, made.results()))
