"""What goes into a paper: tables that LaTeX takes, and a paragraph whose numbers are those of results.json."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from evenedit.api.load_results import load_results
from evenedit.report.pages.report import write_report
from evenedit.report.render.index import Index
from evenedit.report.text.human_evaluation import band, human_evaluation
from evenedit.reporting.writer import report_study
from evenedit.results.results import Results
from evenedit.stats import analyse
from tests.support.studies import open_study
from tests.support.tables import FEW_DRAWS, rated

SURVEY = {"survey": {"sampler": "balanced", "platform": {"kind": "prolific"}}}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Path]:
    """A report with judges and people."""
    out = tmp_path_factory.mktemp("people")
    results = analyse(rated(), FEW_DRAWS)
    write_report(results, out, title="People & more", study=SURVEY)
    return results, out


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a small study with every experiment and instruments."""
    folder = tmp_path_factory.mktemp("whole")
    experiments = {
        "diagnosis": {"floor": True},
        "mitigation": {"cases": 8, "extractor": {"kind": "simulated"}},
        "stereotype": {"include": ["W-01", "W-26"]},
    }
    made = open_study(
        folder,
        experiments=experiments,
        editors=[{"id": "simulated-replacing", "settings": {"race": 0.6, "gender": 0.5}, "seeds": [1, 2]}],
        instruments=[{"id": "change", "kind": "change", "settings": {"identity": False}}],
    )
    made.run()
    report_study(made, folder / "report")
    return folder / "report"


def documents(out: Path) -> list[Path]:
    return [*sorted((out / "tables").glob("*.tex")), *out.glob("*.tex")]


def test_every_table_keeps_the_grammar_of_latex(people: tuple[Results, Path], whole: Path) -> None:
    checked = 0
    for path in (*documents(people[1]), *documents(whole)):
        text = path.read_text()
        assert text.isascii(), (path.name, [c for c in text if not c.isascii()][:5])
        bare = re.sub(r"\\.", "", text)  # without commands and escaped characters
        assert bare.count("{") == bare.count("}"), path.name
        assert bare.count("$") % 2 == 0, path.name
        assert not re.search(r"(?<!\\)[#^~_]", re.sub(r"\$[^$]*\$|\\label\{[^}]*\}", "", text)), path.name
        assert text.count(r"\begin{") == text.count(r"\end{"), path.name
        for table in re.findall(r"\\begin\{tabular\}\{([lr]+)\}\n\\toprule\n(.*?)\\bottomrule", text, re.S):
            columns, body = table
            flat = re.sub(r"\\begin\{tabular\}\[.\]\{@\{\}.@\{\}\}.*?\\end\{tabular\}", "x", body)
            for line in flat.splitlines():
                if line.endswith(r"\\"):
                    assert len(re.findall(r"(?<!\\)&", line)) == len(columns) - 1, (path.name, line)
                    checked += 1
    assert checked > 300


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex here; the grammar is checked above")
def test_every_table_compiles(people: tuple[Results, Path], whole: Path, tmp_path: Path) -> None:
    paths = [*documents(people[1]), *documents(whole)]
    body = "".join(f"\\input{{{path}}}\\clearpage\n" for path in paths)
    text = f"\\documentclass{{article}}\\usepackage{{booktabs,graphicx}}\\begin{{document}}\n{body}\\end{{document}}\n"
    (tmp_path / "all.tex").write_text(text)
    made = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert made.returncode == 0, made.stdout[-2000:]
    assert "Missing character" not in (tmp_path / "all.log").read_text(errors="replace")
    assert (tmp_path / "all.pdf").stat().st_size > 10_000


def cells(line: str) -> list[str]:
    """The first number of each cell of a row, as it is printed."""
    flat = re.sub(r"\\begin\{tabular\}\[.\]\{@\{\}.@\{\}\}(.*?)\\\\.*?\\end\{tabular\}", r"\1", line)
    shown = (re.sub(r"\{\\scriptsize.*?\}", "", cell) for cell in flat.removesuffix(r"\\").split(" & "))
    return [cell.strip().replace("$-$", "-").removesuffix(r"\%") for cell in shown]


def test_numbers_in_latex_are_those_of_results_json(people: tuple[Results, Path]) -> None:
    out = people[1]
    body = json.loads((out / "results.json").read_text())
    rates = ("edit_success", "soft_erasure", "skin_lighter", "skin_darker", "race_change", "gender_change")
    lines = {
        cells(line)[0]: cells(line) for line in (out / "tables/table19.tex").read_text().splitlines() if "&" in line
    }
    compared = 0
    for e in body["estimates"]:
        where = (e["experiment"], e["condition"], e["group"])
        if where == ("diagnosis", "baseline", {}) and e["measure"].removeprefix("rate.") in rates and e["editor"]:
            shown = lines[e["editor"]][1 + rates.index(e["measure"].removeprefix("rate."))]
            assert shown == f"{100 * e['value']:.1f}"
            compared += 1
    assert compared == 2 * len(rates)
    rows = [
        cells(line)
        for line in (out / "tables/table6.tex").read_text().splitlines()
        if line.startswith(("Judges", "People"))
    ]
    axes = ("edit_success", "skin_tone", "race_drift", "gender_drift", "age_drift")
    means = {
        (a.statistic, a.editor, a.axis): a.value
        for a in load_results(out).agreement
        if a.raters == "all" and a.condition == "baseline" and not a.group
    }
    for who, editor, *numbers in rows:
        place = None if editor == "All editors" else editor
        people = [means["mean_people", place, axis] for axis in axes]
        apart = [means["mean_difference", place, axis] for axis in axes]
        told = {
            "People": [f"{p:.2f}" for p in people],
            "Judges": [f"{p + d:.2f}" for p, d in zip(people, apart, strict=True)],
            "Judges minus people": [f"{d:+.2f}" for d in apart],
        }
        assert numbers[:5] == told[who]
    assert len(rows) == 9


def test_the_paragraph_tells_the_numbers_of_results_json(people: tuple[Results, Path]) -> None:
    results, out = people
    text = (out / "human-evaluation.md").read_text()
    counts = results.counts
    rated, edited = f"{counts['rated']:,}", f"{counts['edited']:,}"
    assert f"people rated {rated} of {edited} outputs (N = {rated} for diagnosis)" in text
    assert f"The answers of {counts['people']} people count; people were recruited through Prolific." in text
    assert "Each of these outputs was rated by 3 people." in text
    checked = 0
    for a in results.agreement:
        if a.raters == "all" and a.editor is None and not a.group and a.condition == "baseline" and a.low is not None:
            shown = f"{a.value:.2f} [{a.low:.2f}, {a.high:.2f}]".replace("-", "−")
            if a.statistic == "fleiss_kappa" or (a.statistic == "cohen_kappa" and a.axis.endswith(".label")):
                assert shown in text, (a.statistic, a.axis)
                checked += 1
    assert checked == 5 + 3
    assert "Not compared, since judges, people or both gave no such answers: preference, stereotype." in text


def test_a_word_for_agreement_needs_the_whole_interval(people: tuple[Results, Path]) -> None:
    results, _ = people

    def paragraph(low: float, high: float) -> str:
        rows = tuple(
            replace(a, value=0.7, low=low, high=high) if a.statistic == "fleiss_kappa" else a for a in results.agreement
        )
        return human_evaluation(Index(replace(results, agreement=rows)), {}) or ""

    assert "0.70 [0.65, 0.75] for edit success, substantial;" in paragraph(0.65, 0.75)
    assert "0.70 [0.55, 0.75] for edit success;" in paragraph(0.55, 0.75)
    assert [band(x) for x in (-0.1, 0.1, 0.3, 0.5, 0.6, 0.61, 0.9)] == [
        *("poor", "slight", "fair", "moderate", "moderate", "substantial", "almost perfect")
    ]


def test_what_is_not_known_is_named_as_missing(people: tuple[Results, Path]) -> None:
    results, _ = people
    rows = tuple(
        replace(a, value=None, low=None, high=None, method="undefined: all ratings are alike")
        if a.statistic == "fleiss_kappa"
        else a
        for a in results.agreement
        if a.statistic != "cohen_kappa"
    )
    text = human_evaluation(Index(replace(results, agreement=rows, counts={})), {}) or ""
    for words in (
        "how many is missing",
        "Where people were recruited is not recorded",
        "How the sample was drawn is not recorded",
        "How many people rated each output is missing",
        "missing for edit success (all ratings are alike)",
        "Cohen's κ was not computed",
    ):
        assert words in text, words
    assert human_evaluation(Index(Results({}, {}, ())), {}) is None


def test_simulated_people_are_never_recruited(people: tuple[Results, Path]) -> None:
    results = replace(people[0], simulated=("simulated-person-01",))
    text = human_evaluation(Index(results), {"survey": {"simulated_people": 3, "platform": {"kind": "prolific"}}}) or ""
    assert "SIMULATED: nobody was recruited" in text and "Prolific" not in text
    assert "SIMULATED data, no finding" in text


def test_what_people_rated_adds_up(people: tuple[Results, Path]) -> None:
    counts = people[0].counts
    for factor in ("race", "gender", "age", "editor", "arm", "by"):
        parts = [n for key, n in counts.items() if key.startswith(f"rated.{factor}.")]
        assert sum(parts) == counts["rated"] == counts["edits"], factor
    assert sum(n for key, n in counts.items() if key.startswith("portraits.race.")) == counts["portraits"]
