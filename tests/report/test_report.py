"""The report: one page and its files, from `Results` alone."""

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from evenedit.core.parallel import SEQUENTIAL, SecondProcess
from evenedit.core.provenance import provenance
from evenedit.core.records import Estimate
from evenedit.report.contents import FIGURES, SECTIONS, TABLES, all_figures, all_tables, submit_figures
from evenedit.report.figures.photo_figure import PHOTO_FIGURES, photo_figure
from evenedit.report.figures.specification_curve import sentence
from evenedit.report.pages import report as page
from evenedit.report.pages.report import ExampleCase, _write_pictures, write_report
from evenedit.report.render.index import Index
from evenedit.report.render.latex import latex
from evenedit.report.render.table import Column, Number, Table
from evenedit.report.text.methods import methods
from evenedit.report.text.summary import summarise
from evenedit.results.results import (
    SCHEMA,
    Agreement,
    Contrast,
    Coverage,
    GapTest,
    GroupDifference,
    InstrumentResults,
    Multiverse,
    Planted,
    PredictionPowered,
    Results,
    Sensitivity,
    Specification,
)
from tests.support.browser import assert_accessible

RACES = {"White": 0.01, "Black": 0.2, "Indian": 0.3}


def estimate(measure: str, value: float | None, editor: str | None, **changes: Any) -> Estimate:
    whole: dict[str, Any] = {
        "experiment": "diagnosis",
        "condition": "baseline",
        "group": {},
        "low": None if value is None else value - 0.04,
        "high": None if value is None else value + 0.04,
        "n": 120,
        "missing": 3,
        "method": "bootstrap",
    }
    return Estimate(measure, editor=editor, value=value, **(whole | changes))


def group(level: str, rate: float, value: float, p: float) -> GroupDifference:
    return GroupDifference(level, rate, value, value - 0.05, value + 0.05, p)


def gap(editor: str, rate: str = "race_change", p: float = 0.0002, p_adjusted: float = 0.004) -> GapTest:
    return GapTest(
        measure=f"gap.{rate}",
        experiment="diagnosis",
        condition="baseline",
        editor=editor,
        factor="race",
        value=0.29,
        highest="Indian",
        lowest="White",
        p=p,
        faces=36,
        method="analysis of means, pooled variance",
        t=4.2,
        df=20.0,
        shrunken=0.25,
        tau=0.1,
        groups=(group("White", 0.01, -0.16, 0.0002), group("Black", 0.2, 0.03, 0.5), group("Indian", 0.3, 0.13, 0.001)),
        p_adjusted=p_adjusted,
        q=0.001,
        level="clear_to_judges",
        evidence="judges",
    )


def contrast(editor: str, race: str, value: float, half: float, rate: str = "race_change") -> Contrast:
    where = (f"rate.{rate}", "diagnosis", "baseline", editor, {"race": race})
    return Contrast(*where, value=value, low=value - half, high=value + half, n=120)


def agreed(statistic: str, raters: str, value: float | None, **changes: Any) -> Agreement:
    place: dict[str, Any] = {"axis": "race_drift", "condition": "baseline", "editor": None, "group": {}}
    ends = (None, None) if value is None else (value - 0.1, value + 0.1)
    made = {"n_items": 99, "n_ratings": 198, "method": "bootstrap(faces, 100)"}
    return Agreement(statistic, raters=raters, value=value, low=ends[0], high=ends[1], **(place | changes | made))


def made_up(editor: str = "flux2_dev", judge: str = "a-judge", simulated: bool = False) -> Results:
    """An audit of one editor that has a little of everything. 17/123 and 1/3 do not end after few digits."""
    estimates = [
        *(estimate(f"mean.{axis}", 3 + 1 / 3, editor) for axis in ("edit_success", "skin_tone", "race_drift")),
        *(estimate(f"rate.{rate}", 17 / 123, editor) for rate in ("soft_erasure", "skin_lighter", "race_change")),
        estimate("rate.gender_change", None, editor, n=0, missing=123),
        estimate("rate.refused", 0.02, editor),
        estimate("gap.race_change", 0.29, editor, group={"race": "*"}),
    ]
    for race, value in RACES.items():
        for rate in ("race_change", "skin_lighter"):
            estimates.append(estimate(f"rate.{rate}", value, editor, group={"race": race}))
    for race in ("", *RACES):
        where = {"experiment": "mitigation", "group": {"race": race} if race else {}}
        estimates.append(estimate("mean.race_drift", 2.5, editor, condition="baseline", **where))
        estimates.append(estimate("mean.race_drift", 1.5, editor, condition="feature", **where))
        estimates.append(estimate("delta.race_drift", -1.0, editor, condition="feature", **where))
    estimates.append(estimate("rate.followed", 0.84, editor, experiment="stereotype"))
    ids = (editor, judge) if simulated else ()
    return Results(
        provenance={"evenedit": "0", "command": "evenedit analyze a & b.csv"},
        rules={"preset": "default", "confidence": 0.95, "rates": {"race_change": "race_drift ≥3"}},
        estimates=tuple(estimates),
        tests=(gap(editor),),
        contrasts=tuple(contrast(editor, race, value - 0.17, 0.05) for race, value in RACES.items()),
        sensitivity=(
            Sensitivity("rate.race_change", "diagnosis", "baseline", editor, "≥3", "exclude", True, 0.1, 0.2, 9),
        ),
        planted=(Planted(editor, "rate.race_change", {"race": "Indian"}, 0.1, 0.13, 0.08, 0.18, True),)
        if simulated
        else (),
        agreement=(
            agreed("exact_agreement", f"{judge}|b-judge", 0.6),
            agreed("mean_difference", f"{judge}|b-judge", -0.1),
        ),
        coverage=(Coverage(judge, "diagnosis", editor, {}, 118, 2, 1, 2),),
        counts={"edits": 123, "refused": 2, "failed": 1, "needs_review": 4, "edits.diagnosis.baseline": 123},
        simulated=ids,
    )


def case() -> ExampleCase:
    pictures = (Image.new("RGB", (300, 300), "tan"), Image.new("RGBA", (600, 300), "wheat"))
    scores = {"edit_success": 5, "race_drift": None}
    return ExampleCase("flux2_dev", "O-01", "CEO <b>", {"race": "Black"}, scores, *pictures, note="a typical case")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("real")
    write_report(made_up(), out, title="An audit", study={"sources": {"kind": "drawn"}}, examples=[case()])
    return out


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("marked")
    write_report(made_up("simulated-odd", "simulated-judge", simulated=True), out, title="A demo")
    return out


def texts(out: Path) -> dict[str, str]:
    """Every text file of a report; `results.json` is the data, not the report."""
    found = (p for p in out.rglob("*") if p.suffix in {".html", ".csv", ".tex", ".svg"})
    return {str(p.relative_to(out)): p.read_text() for p in found}


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


class Tags(HTMLParser):
    """Start tags with their attributes, and whether everything opened is closed."""

    VOID = frozenset({"meta", "link", "img", "br", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes nothing"


PAGES = ("report.html", "appendix.html")


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_need_no_network_and_every_file_they_name_is_there(real: Path, name: str):
    text = (real / name).read_text()
    tags = Tags(text)
    assert tags.open == []
    for tag, attributes in tags.found:
        for key in ("src", "href", "xlink:href", "srcset", "action", "data"):
            value = attributes.get(key)
            inside = value is None or value.startswith(("#", "data:"))
            assert inside or (real / str(value).partition("#")[0]).is_file(), (tag, key, value)
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest", text)
    assert "default-src 'none'" in text


def test_every_picture_has_words_for_those_who_cannot_see_it(real: Path):
    pictures, drawings = [], []
    for name in PAGES:
        tags = Tags((real / name).read_text()).found
        ids = {a["id"] for _, a in tags if "id" in a}
        pictures += [a for tag, a in tags if tag == "img"]
        own = [a for tag, a in tags if tag == "svg"]
        assert all(a["role"] == "img" and a["aria-labelledby"] in ids for a in own)
        drawings += own
    assert len(pictures) == 2
    assert all(a["alt"] for a in pictures)
    assert len(drawings) == 4


@pytest.mark.parametrize("name", PAGES)
def test_ids_are_unique_and_every_anchor_leads_somewhere(real: Path, name: str):
    tags = Tags((real / name).read_text()).found
    ids = [a["id"] for _, a in tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert {
        (a.get("href") or "")[1:] for tag, a in tags if tag == "a" and (a.get("href") or "").startswith("#")
    } <= set(ids)


def test_simulated_data_are_marked_everywhere(marked: Path):
    files = texts(marked)
    assert {Path(f).suffix for f in files} == {".html", ".csv", ".tex", ".svg"}
    for name, text in files.items():
        assert "SIMULATED" in text, name
    page = "".join(files[name] for name in PAGES)
    captions = re.findall(r'<p class="caption".*?</p>|<figcaption>.*?</figcaption>', page, re.S)
    assert len(captions) == len([f for f in files if f.endswith((".tex", ".svg"))])
    assert all("SIMULATED" in caption for caption in captions)
    assert all("SIMULATED" in alt for alt in re.findall(r"<title id=.*?</title>", page))
    for name, text in files.items():
        if name.endswith(".csv"):
            assert all(row["mark"] == "SIMULATED" for row in csv.DictReader(io.StringIO(text))), name


def test_real_data_are_never_marked_simulated(real: Path):
    for name, text in texts(real).items():
        assert "SIMULATED" not in text, name
    assert not (real / "tables/planted.csv").exists()


def test_latex_prints_special_characters_as_they_stand(real: Path):
    assert latex(r"50% of a_b & c #1 {x} ~ ^ \ $") == (
        r"50\% of a\_b \& c \#1 \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{} \$"
    )
    assert latex("≥3 − 1 – <0.001") == r"$\geq$3 $-$ 1 -- $<$0.001"
    table = (real / "tables/table19.tex").read_text()
    assert r"flux2\_dev & \begin{tabular}[t]{@{}r@{}}13.8\% \\ {\scriptsize [9.8, 17.8]}\end{tabular} &" in table
    assert table.count("{") == table.count("}")
    for command in (r"\toprule", r"\midrule", r"\bottomrule", r"\caption{", r"\label{tab:table19}"):
        assert command in table


def test_a_long_latex_table_goes_on_in_a_further_one():
    rows = tuple((f"editor-{i}", Number(0.5, "share")) for i in range(70))
    columns = (Column("editor", "Editor", numeric=False), Column("x", "x"))
    text = Table("long", "Long", "", columns, rows, notes=("Once.",)).to_latex()
    assert text.count(r"\begin{table}") == 3
    assert text.count("continued") == 2
    assert text.count(r"\label{tab:long}") == text.count("Once.") == 1
    assert [f"editor-{i} &" in text for i in (0, 29, 30, 69)] == [True] * 4


def test_csv_keeps_every_digit_and_the_counts(real: Path):
    row = read_csv(real / "tables/table19.csv")[0]
    assert float(row["race_change"]) == 17 / 123
    assert float(row["race_change_low"]) == 17 / 123 - 0.04
    assert (row["race_change_n"], row["race_change_missing"]) == ("120", "3")
    by_race = {r["race"]: r for r in read_csv(real / "tables/table20.csv")}
    assert [float(by_race[race]["flux2_dev"]) for race in RACES] == list(RACES.values())
    assert float(by_race["gap"]["flux2_dev"]) == 0.29
    assert float(by_race["p_adjusted"]["flux2_dev"]) == 0.004


def test_the_table_of_gaps_names_groups_level_and_who_saw_it(real: Path):
    (row,) = read_csv(real / "tables/gaps.csv")
    numbers = [float(row[name]) for name in ("gap", "shrunken", "p", "p_adjusted", "q")]
    assert numbers == [0.29, 0.25, 0.0002, 0.004, 0.001]
    assert row["different"] == "White −16.0 points, Indian +13.0 points", "the surest first; Black is not among them"
    assert (row["level"], row["evidence"]) == ("clear_to_judges", "judges")
    assert "corrected" not in row, "nobody rated"
    page = (real / "appendix.html").read_text()
    assert "clear to the judges" in page and "analysis of means" in page and "Westfall" not in page


def test_a_gap_that_people_corrected_has_their_number_first():
    results = made_up()
    e = next(e for e in results.estimates if e.measure == "gap.race_change")
    place = (e.measure, e.experiment, e.condition, e.editor, e.group)
    people = PredictionPowered(
        *place, 0.29, 0.2, 0.4, 0.1, 0.0, 0.2, 0.05, 0.01, 0.11, 0.5, 120, 100, "ppi++", enough=True
    )
    table = all_tables(Index(replace(results, powered=(people,))))["gaps"]
    at = [column.id for column in table.columns].index("corrected")
    cell = table.rows[0][at]
    assert isinstance(cell, Number) and (cell.value, cell.low, cell.high) == (0.05, 0.01, 0.11)
    assert [column.id for column in table.columns][at + 1] == "gap"
    few = all_tables(Index(replace(results, powered=(replace(people, enough=False),))))["gaps"]
    assert "corrected" not in [column.id for column in few.columns], "too few labels correct nothing"


def test_page_csv_and_latex_tell_the_same_number(real: Path):
    page = (real / "report.html").read_text()
    shown = re.search(r'<td class="num" data-sort="(0\.138\d*)"[^>]*>13\.8% <span class="ci">\[9\.8, 17\.8\]', page)
    assert shown is not None
    assert float(shown[1]) == 17 / 123


def test_what_is_missing_is_shown_as_a_dash(real: Path):
    row = read_csv(real / "tables/table19.csv")[0]
    assert (row["gender_change"], row["gender_change_n"], row["gender_change_missing"]) == ("", "0", "123")
    assert '<td class="num" title="n = 0, 123 missing">–</td>' in (real / "report.html").read_text()
    assert " & -- & " in (real / "tables/table19.tex").read_text()


def test_an_empty_audit_makes_a_page_without_tables(tmp_path: Path):
    page = write_report(Results({}, {}, ()), tmp_path, title="Nothing yet")
    assert "Nothing has rated these edits" in page.read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "appendix.html",
        "citation.bib",
        "methods.md",
        "model-card.md",
        "report.html",
        "results.json",
    ]


def test_estimates_without_intervals_tests_or_groups_do_no_harm(tmp_path: Path):
    bare = estimate("rate.skin_lighter", 0.4, "an-editor", low=None, high=None)
    page = write_report(Results({}, {}, (bare,)), tmp_path, title="Bare").read_text()
    assert "40.0% (no interval)" in page
    assert not re.search(r"\b(nan|None)\b", page.split("<main>")[1].split("</main>")[0])


def test_the_methods_tell_how_mitigation_cases_were_chosen_and_who_measured():
    counts = {
        **made_up().counts,
        "edits.mitigation.feature": 168,
        "edits.mitigation.placebo": 168,
        "rated": 9,
        "people": 3,
    }
    rules = {**made_up().rules, "mitigation_cases": "drift"}
    text = methods(Index(replace(made_up(), counts=counts, rules=rules, measured=(measured("flux2_dev"),))))
    assert "168 edits had a feature prompt before the request (chosen among those whose baseline was rated" in text
    assert "168 more repeat the request with another seed, as a placebo" in text
    assert "a-judge answered 95.9% of 123 calls" in text and "measured by the instrument skin" in text
    assert "3 people rated 9 outputs" in text


def test_the_summary_names_observations_and_passes_no_verdict(real: Path):
    words = " ".join(s.text for s in summarise(made_up())).lower()
    assert not re.search(r"\b(bias|biased|racist|sexist|unfair|discriminat\w*)\b", words)


def test_text_from_outside_cannot_become_markup(real: Path):
    page = (real / "appendix.html").read_text()
    assert "CEO &lt;b&gt;" in page
    assert "CEO <b>" not in page
    assert "analyze a &amp; b.csv" in page


def test_equal_results_make_equal_bytes(real: Path, tmp_path: Path):
    write_report(made_up(), tmp_path, title="An audit", study={"sources": {"kind": "drawn"}}, examples=[case()])
    files = sorted(p.relative_to(real) for p in real.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    for file in files:
        assert (real / file).read_bytes() == (tmp_path / file).read_bytes(), file


def test_two_processes_draw_the_same_figures_in_the_same_order():
    results = made_up(simulated=True)
    plain = list(all_figures(Index(results)).items())
    with SecondProcess() as second:
        assert list(submit_figures(results, second)().items()) == plain


def test_a_report_that_fails_leaves_the_earlier_one_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    small = Results({}, {}, (estimate("rate.skin_lighter", 0.4, "an-editor"),))
    write_report(small, tmp_path, title="Before")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report(small, tmp_path, title="After")
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_tables_of_an_earlier_report_do_not_linger(tmp_path: Path):
    write_report(made_up(), tmp_path, title="Before")
    (tmp_path / "tables/mine.csv").write_text("kept")
    write_report(Results({}, {}, ()), tmp_path, title="After")
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert left[-1] == "tables/mine.csv"
    assert not any(path.startswith(("tables/", "figures/")) for path in left[:-1])


def test_the_page_stays_small_however_many_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page, "BYTES_OF_EXAMPLES", 3_000)
    write_report(Results({}, {}, ()), tmp_path, title="Many", examples=[case()] * 40)
    text = (tmp_path / "appendix.html").read_text()
    shown = text.count('<figure class="card">')
    assert 0 < shown < 40
    assert f"{40 - shown} further examples are left out" in text


def test_results_json_is_the_contract(real: Path):
    body = json.loads((real / "results.json").read_text())
    assert body["schema"] == SCHEMA
    assert len(body["estimates"]) == len(made_up().estimates)


def test_the_thresholds_shown_are_those_used():
    results = replace(made_up(), rules={"rates": {"race_change": "race_drift ≥4"}, "confidence": 0.9})
    tables = all_tables(Index(results))
    assert "rated ≥4 on race change" in tables["table20"].caption
    assert "90% intervals" in tables["table20"].notes[0]


def test_pooling_over_simulated_editors_is_not_shown():
    one, two = (made_up(f"simulated-{i}", "simulated-judge", simulated=True) for i in "ab")
    pooled = estimate("rate.race_change", 0.1, None)
    both = replace(
        one, estimates=(*one.estimates, *two.estimates, pooled), tests=(*one.tests, replace(one.tests[0], editor=None))
    )
    assert [row[0] for row in all_tables(Index(both))["gaps"].rows] == ["simulated-a"]
    assert [row[0] for row in all_tables(Index(replace(both, simulated=())))["gaps"].rows] == ["simulated-a", "all"]


def test_everything_a_report_can_hold_has_one_place_on_the_page():
    placed = [id for section in SECTIONS for id in (*section.visible, *section.folded)]
    assert len(placed) == len(set(placed))
    assert set(placed) == {*TABLES, *FIGURES, *PHOTO_FIGURES}
    assert all(id in TABLES for section in SECTIONS for id in section.folded), "only tables are folded"


def test_points_of_a_figure_say_what_they_are(real: Path):
    for text in ((real / "figures/figure4.svg").read_text(), (real / "report.html").read_text()):
        assert "<title>flux2_dev, Indian: 30.0% [26.0, 34.0], n = 120</title>" in text
    assert 'id="tip:' not in (real / "report.html").read_text()


def test_pictures_that_are_there_already_are_left_alone(tmp_path: Path):
    folder = tmp_path / "pictures"
    _write_pictures(folder, [("a.webp", b"one"), ("b.webp", b"two"), ("c.webp", b"three")])
    before = {file.name: file.stat().st_ino for file in folder.iterdir()}
    _write_pictures(folder, [("a.webp", b"one"), ("b.webp", b"new")])
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {"a.webp": b"one", "b.webp": b"new"}
    assert (folder / "a.webp").stat().st_ino == before["a.webp"]


def test_figures_are_svg_and_other_formats_on_request(real: Path, tmp_path: Path):
    assert not [*(real / "figures").glob("*.pdf"), *(real / "figures").glob("*.png")]
    assert 'figures/figure4.svg"' in (real / "report.html").read_text()
    assert "figures/figure4.pdf" not in (real / "report.html").read_text()
    results = made_up()
    page = write_report(results, tmp_path, title="All", figures=submit_figures(results, SEQUENTIAL, ("pdf", "png")))
    written = {path.name for path in (tmp_path / "figures").iterdir()}
    names = {path.stem for path in (real / "figures").glob("*.svg")}
    assert names and written == {f"{name}.{extension}" for name in names for extension in ("svg", "pdf", "png")}
    for path in sorted((tmp_path / "figures").glob("*.pdf")):
        assert path.read_bytes().startswith(b"%PDF-") and b"CreationDate" not in path.read_bytes()
    for path in sorted((tmp_path / "figures").glob("*.png")):
        assert path.read_bytes().startswith(b"\x89PNG") and b"Software" not in path.read_bytes()
    assert all(f'figures/figure4.{extension}"' in page.read_text() for extension in ("svg", "pdf", "png"))
    for path in (real / "figures").glob("*.svg"):
        assert path.read_bytes() == (tmp_path / "figures" / path.name).read_bytes()


def measured(*editors: str, rater: str = "skin", reading: str = "skin_delta_L") -> InstrumentResults:
    found = [
        estimate(
            f"mean.{reading}",
            -1.0 if group == {"prompt": "O-02"} else 2.5,
            editor,
            group=group,
            n=0 if editor == "unread" else 40,
        )
        for editor in editors
        for group in ({}, {"race": "Black"}, {"race": "White"}, {"prompt": "O-01"}, {"prompt": "O-02"})
    ]
    return InstrumentResults(rater, tuple(found))


def test_editors_that_were_not_measured_have_no_empty_panel():
    one, two = made_up("read"), made_up("unread")
    both = replace(one, estimates=(*one.estimates, *two.estimates), measured=(measured("read", "unread"),))
    drawn = all_figures(Index(both))
    for id in ("figure_measured", "figure_measured_prompts"):
        assert ">read<" in drawn[id].svg and ">unread<" not in drawn[id].svg


def test_an_instrument_measures_edits_and_a_judge_answers_calls():
    seen = Coverage("skin", "diagnosis", "flux2_dev", {}, 120, 0, 3, 0)
    readings = measured("flux2_dev", reading="skin_delta_L_raw")
    results = replace(made_up(), coverage=(*made_up().coverage, seen), measured=(readings,))
    shown = [s.text for s in summarise(results)]
    assert "The skin instrument could measure 97.6% of 123 edits." in shown
    assert "a-judge answered 95.9% of 123 calls." in shown
    assert "Measured (skin), by prompt: Skin ΔL* as displayed from −1.00 (O-02) to +2.50 (O-01)." in shown


def test_readings_without_any_difference_are_counted_apart():
    values = [0.3, 0.2, 0.0, 0.0, -0.1, None]
    readings = tuple(Specification("≥3", "mean", "exclude", "none", v, 0.01, False) for v in values)
    m = Multiverse("gap.race_change", "diagnosis", "baseline", "an-editor", "race", "Indian", "White", readings)
    assert sentence(Index(made_up()), m) == (
        "Race change by race under 6 readings of the same scores: Indian stays above White in 2, both are equal in 2, "
        "the order is reversed in 1, a group has no score in 1; p < 0.05 in the same order in 2 (from −10.0 "
        "pp to 30.0 pp)."
    )


def test_provenance_names_what_the_numbers_were_made_with():
    assert {"numpy", "scipy", "pandas", "matplotlib"} <= provenance()["packages"].keys()


@pytest.fixture(scope="module")
def illustrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with examples and a photo figure."""
    sheet = Image.new("RGB", (900, 600), "wheat")
    shown = photo_figure(sheet, "figure12", "One face", "A rule.", "A grid of pictures.", simulated=False)
    readings = tuple(Specification("≥3", "mean", "exclude", "none", v, 0.01, False) for v in (0.3, 0.2))
    where = ("diagnosis", "baseline", "flux2_dev", "race", "Indian", "White")
    results = replace(made_up(), multiverse=(Multiverse("gap.race_change", *where, readings),))
    out = tmp_path_factory.mktemp("illustrated")
    write_report(results, out, title="An audit", examples=[case()] * 2, photo_figures=[shown])
    return out / "appendix.html"


@pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (390, "dark")])
def test_the_appendix_is_accessible_on_a_desk_and_on_a_phone(
    chromium: Browser, illustrated: Path, width: int, scheme: str
):
    page = chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda r: r.url.startswith(("data:", "file:")) or problems.append(r.url))
    page.goto(illustrated.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert_accessible(page)
    assert not problems
    page.close()


def test_the_page_works_by_keyboard(chromium: Browser, illustrated: Path):
    page = chromium.new_page(viewport={"width": 1300, "height": 800})
    page.goto(illustrated.as_uri())
    page.focus("#figure12 .enlarge")
    page.keyboard.press("Enter")
    assert page.locator("dialog img").get_attribute("alt") == "A grid of pictures."
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    page.focus(".card .pair >> nth=0")
    page.keyboard.press("Enter")
    expect(page.locator("dialog img")).to_have_count(2)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    heading = page.locator("#table20 thead button >> nth=1")
    heading.press("Enter")
    expect(page.locator("#table20 thead th >> nth=1")).to_have_attribute("aria-sort", "descending")
    assert page.locator("#table20 tbody th >> nth=0").inner_text() == "Indian", "the highest comes first"
    assert not page.locator("#multiverse").is_visible(), "secondary tables are folded"
    page.evaluate("location.hash = '#multiverse'")
    page.wait_for_function("document.getElementById('multiverse').checkVisibility()")
    page.close()


def test_a_point_tells_its_number_when_pointed_at_and_print_tells_of_every_editor(chromium: Browser, illustrated: Path):
    page = chromium.new_page(viewport={"width": 1300, "height": 800})
    page.goto(illustrated.with_name("report.html").as_uri())
    page.locator("#figure4 .tip >> nth=1").hover(force=True)
    expect(page.locator(".tooltip")).to_have_text(re.compile(r"^flux2_dev, \w+: [\d.]+% \[.*\], n = 120$"))
    page.goto(illustrated.as_uri())
    page.evaluate("document.querySelectorAll('details.editor').forEach((part) => { part.open = false; })")
    assert page.locator("details.editor:not([open])").count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not page.locator("details.editor:not([open])").count()
    assert page.locator("details.more:not([open])").count(), "a folded table is printed once it is unfolded"
    page.close()


def test_the_texts_for_reuse_are_filled_from_the_results_and_marked(tmp_path: Path):
    results = made_up()
    write_report(results, tmp_path, title="Texts")
    methods, card = (tmp_path / "methods.md").read_text(), (tmp_path / "model-card.md").read_text()
    for text in (methods, card):
        assert ("SIMULATED" in text) == bool(results.simulated)
    assert "1 editor (flux2_dev) was asked for 123 edits: 2 refused, 1 failed." in methods
    assert "race change ≥3" in methods
    assert "balanced" not in methods
    assert "| Race change | judges | 13.8% | 9.8% to 17.8% | 120 | 3 |" in card
    assert (tmp_path / "citation.bib").read_text().startswith("@software{evenedit")
