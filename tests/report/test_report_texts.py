"""The texts of a report: golden files of 12 random studies, and numbers of sentences against `results.json`.

After a change of wording: `pytest tests/report/test_report_texts.py --update-golden`, then read the diff of
tests/golden.
"""

import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenedit.core.version import __version__
from evenedit.report.pages.report import write_report
from evenedit.report.render.index import Index
from evenedit.report.text.methods import texts_for_reuse
from evenedit.report.text.summary import summarise
from tests.support.paths import TESTS
from tests.support.random_studies import RandomStudy, random_study

GOLDEN = (3, 10, 12, 46, 62, 82, 101, 107, 117, 137, 149, 181_033)
"""Seeds chosen so that 12 studies have as many kinds of sentences as possible."""
RANDOM = range(500, 520)
SIDES = {"skin_tone": ("skin_lighter", "skin_darker"), "age_drift": ("older", "younger")}
"""The two rates of a two-sided question."""
CONSTANTS = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.5, 1.5, 40, 80, 100])
"""Numbers fixed by the protocol: alpha, Landis and Koch's bands, no preference, the smallest number of permutations
with p < 0.05, and the judge error and power (80 of 100 studies) for which labels are planned."""
NUMBER = re.compile(r"(?<![\w.,+−-])(?<!\w-)[−+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?%?(?![\w+]|[.,-]\w)")
"""A number that stands by itself; digits within names (`O-01`, `judge-2`, `20s`, `70+`) are not numbers."""


# -- golden files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", GOLDEN)
def test_report_text_is_the_golden_text(seed: int, tmp_path: Path, golden: Any) -> None:
    golden(f"report_texts/{seed}.md", report_text(random_study(seed), tmp_path))


def test_every_golden_file_belongs_to_a_study() -> None:
    assert {path.stem for path in (TESTS / "golden" / "report_texts").iterdir()} == {str(seed) for seed in GOLDEN}


def report_text(study: RandomStudy, folder: Path) -> str:
    """Return all texts of a report; the version is replaced, so that a release changes no golden file."""
    results = study.results()
    write_report(results, folder, title="A random study", study=study.study, figures=dict)
    parts = ["# Summary", *(f"[{line.certainty}] {line.text}" for line in summarise(Index(results)))]
    parts.append("# Findings")
    for finding in results.findings:
        parts += [f"[{finding.level}] {finding.text}", *(f"- {caveat}" for caveat in finding.caveats)]
    parts += ["# report.html", *visible_lines((folder / "report.html").read_text("utf-8"))]
    for path in sorted(folder.glob("*.md")):
        parts += [f"# {path.name}", path.read_text("utf-8").strip()]
    return "\n".join(parts).replace(__version__, "VERSION") + "\n"


def visible_lines(page: str) -> Iterator[str]:
    """Yield the visible lines of an HTML page."""
    page = re.sub(r"<(script|style|svg)\b.*?</\1>", "", page, flags=re.DOTALL)
    page = re.sub(r"</(t[dh])>", " | ", page)
    for line in html.unescape(re.sub(r"<[^>]+>", "", page)).splitlines():
        if line.strip():
            yield " ".join(line.split())


# -- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", RANDOM)
def test_every_number_in_a_sentence_is_in_the_results(seed: int) -> None:
    sentences = list(numbers_to_check(random_study(seed)))
    assert len(sentences) > 4
    missing = [(token, text) for text, values in sentences for token in tokens(text) if not is_in(token, values)]
    assert not missing


def test_a_changed_number_is_noticed() -> None:
    """Add 3 to each number of every finding: the check above must notice most of these errors."""
    changed, noticed = 0, 0
    for seed in (501, 505, 511, 513):
        study = random_study(seed)
        findings = {finding.text for finding in study.results().findings if finding.measure is not None}
        for text, values in numbers_to_check(study):
            for token in tokens(text) if text in findings else ():
                value, places = magnitude(token)
                changed += 1
                noticed += not is_in(f"{value + 3:.{places}f}" + "%" * token.endswith("%"), values)
    assert changed > 200
    assert noticed > 0.8 * changed


def tokens(text: str) -> list[str]:
    return [match[0] for match in NUMBER.finditer(text)]


def magnitude(token: str) -> tuple[float, int]:
    """Return a printed number without its sign, and its decimal places."""
    plain = token.replace(",", "").strip("−+%")
    mantissa, _, exponent = plain.partition("e")
    return float(plain), len(mantissa.partition(".")[2]) - int(exponent or 0)


def is_in(token: str, values: np.ndarray) -> bool:
    """Return whether a printed number is one of the values.

    `12%` is 100 times a value, `12` a value, and `12.0` either of them (percentage points have no sign of their own).
    The value is rounded to the printed decimal places; a tie may be rounded either way. Signs are ignored: a sentence
    states "12 points darker" for −0.12.
    """
    printed, places = magnitude(token)
    scales = [100] if token.endswith("%") else [1, 100] if places > 0 else [1]
    return any((np.abs(scale * values - printed) <= 0.5001 * 10.0**-places).any() for scale in scales)


def numbers_to_check(study: RandomStudy) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each sentence with the values that its numbers may have.

    A finding about one editor and measure: the finding's fields, the analysis rules, the rows of `results.json` about
    this editor, measure and the groups that the finding names (with n + missing of each row), and the portraits of
    these groups. All other sentences: any number of `results.json`, the shares of calls that were scored, and the
    counts of specifications with one result.
    """
    results = study.results()
    record = json.loads(json.dumps(asdict(results), default=str))  # with the rows that CSV files hold
    del record["provenance"]
    findings = record.pop("findings")
    every = as_array([record, findings, scored_shares(record["coverage"]), list(outcome_counts(record["multiverse"]))])
    for finding in findings:
        texts = [finding.pop("text"), *finding.pop("caveats")]
        near = as_array([finding, record["rules"], *related(finding, record, study)]) if finding["measure"] else every
        yield from ((text, near) for text in texts)
    index = Index(results)
    yield from ((line.text, every) for line in summarise(index))
    for name, (_, text) in texts_for_reuse(index, study.study).items():
        if name in ("methods.md", "human-evaluation.md"):
            body = re.sub(r"\*\*[\d.]+ .*?\*\*|\b(?:19|20)\d\d(?=\))", "", text)  # headings, years of references
            yield from ((sentence, every) for sentence in re.split(r"(?<=\.)\s+", body))


def related(finding: dict[str, Any], record: dict[str, Any], study: RandomStudy) -> Iterator[Any]:
    """Yield the rows about the editor, measure and groups of a finding, and counts that follow from them."""
    question = finding["measure"].partition(".")[2]
    names = {question, *SIDES.get(question, ())}
    names |= {f"measured_{name}" for name in names}
    factor = finding["factor"]
    groups = [{}, {factor: "*"}, finding["group"], finding["against"]]
    totals = []
    for row in rows(record):
        if (
            row["editor"] == finding["editor"]
            and row["measure"].partition(".")[2] in names
            and row.get("group", {}) in groups
            and row.get("factor", factor) == factor
        ):
            yield row
            if "n" in row and isinstance(row.get("missing"), int):
                totals.append(row["n"] + row["missing"])
    yield totals
    for group in groups[2:]:
        if isinstance(group, dict) and factor in group:
            yield record["counts"].get(f"portraits.{factor}.{group[factor]}")
    if question in SIDES and any(question in axes for axes in study.table.asks.values()):
        # Edits of prompts that ask for this change are left out. Of the other edits, `results.json` has the difference
        # of the two shares, not the shares.
        yield max(totals) - min(totals)
        yield [edits / finding["n"] for edits in range(finding["n"] + 1)]


def rows(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if {"editor", "measure"} <= value.keys():
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from rows(item)


def as_array(value: Any) -> np.ndarray:
    return np.concatenate([np.abs(np.fromiter(numbers(value), float)), CONSTANTS])


def numbers(value: Any) -> Iterator[float]:
    """Yield the numbers of a JSON value, and those within its strings (labels and rules)."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, str):
        yield from (magnitude(token)[0] for token in tokens(value))
    elif value is not None:
        yield float(value)


def scored_shares(coverage: Sequence[dict[str, Any]]) -> list[float]:
    """Return the share of scored calls by rater and group, over all editors, and the number of calls."""
    calls: dict[tuple[str, str], np.ndarray] = {}
    for row in coverage:
        counts = np.array([row["scored"], row["scored"] + row["refused"] + row["unparseable"] + row["failed"]])
        key = row["rater"], str(row["group"])
        calls[key] = calls.get(key, np.zeros(2)) + counts
    return [x for scored, total in calls.values() if total for x in (scored / total, total)]


def outcome_counts(multiverse: Sequence[dict[str, Any]]) -> Iterator[int]:
    """Yield how many specifications of a gap have each sign, no value, or p < 0.05."""
    for gap in multiverse:
        values = [s["value"] for s in gap["specifications"]]
        signs = [None if value is None else np.sign(value) for value in values]
        yield len(values)
        yield from (signs.count(sign) for sign in (1, 0, -1, None))
        yield sum((s["value"] or 0) > 0 and s["p"] < 0.05 for s in gap["specifications"])
