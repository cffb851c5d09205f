"""What an audit says of skin as displayed, of light, and of skin with a change of light removed."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import evenedit as ee
from evenedit.core.records import Kind, Prompt
from evenedit.instruments import ChangeInstrument, PairContext, SkinInstrument, as_raters
from evenedit.instruments.evidence_image import skin_lines, skin_outlines
from evenedit.instruments.measure import measure
from evenedit.instruments.reading import InstrumentSpec
from evenedit.protocol.rubric import default_rubric
from evenedit.ratings.instruments import UNSEEN, _as_readings
from evenedit.ratings.table import Reading
from evenedit.run.from_images import instruments_at_hand
from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import lighten, render
from evenedit.stats import AnalysisRules, analyse
from tests.support.tables import edit, face, table_of

PROMPTS = ("O-01", "O-02", "V-02")
RACES = ("White", "Black", "Indian")
LIFTED = {"race": "Black"}


def brightened(image: Image.Image) -> Image.Image:
    return image.point(lambda value: min(255, round(value * 1.3)))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Three groups of six drawn faces on three prompts; only the pictures of one group come back brighter."""
    folder = tmp_path_factory.mktemp("brightened")
    rows = []
    for at, (race, copy) in enumerate(product(RACES, range(6))):
        person = sample({"race": race, "gender": ("Male", "Female")[copy % 2], "age": "30s"}, at)
        source = render(person).resize((224, 224))
        source.save(folder / f"{at}.png")
        for number, prompt in enumerate(PROMPTS):
            out = brightened(source) if race == LIFTED["race"] else source
            out.save(folder / f"{at}-{prompt}.jpg", quality=88 + 3 * number)
            paths = {"source": folder / f"{at}.png", "edited": folder / f"{at}-{prompt}.jpg", "prompt": prompt}
            rows.append(paths | {"race": race})
    table = pd.DataFrame(rows).astype(str)
    study = ee.audit(table, instruments=["skin"], factors=["race"], out=folder / "out")
    return study.report(folder / "report"), study


def test_brightening_one_group_is_among_the_first_three_findings_and_names_the_group(report):
    _, study = report
    first = study.results().findings[:3]
    by_measure = {f.measure: f for f in first}
    assert {"gap.displayed_lighter", "gap.brighter"} <= set(by_measure)
    for name in ("gap.displayed_lighter", "gap.brighter"):
        finding = by_measure[name]
        assert (finding.level, finding.group) == ("clear", LIFTED)
        assert "labelled Black" in finding.text and finding.spread == pytest.approx(1, abs=0.01)


def test_no_sentence_about_the_corrected_skin_is_without_a_word_on_light(report):
    _, study = report
    texts = [f.text for f in study.results().findings if "skin_tone" in (f.measure or "") or " 0.0%" in f.text]
    assert texts and all("light was removed" in text for text in texts)


def test_a_finding_shows_where_skin_was_read_with_all_three_readings(report):
    folder, _ = report
    page = (Path(folder).parent / "findings" / "1.html").read_text()
    for words in ("skin as displayed L* +", "brightness of the picture L* +", "skin, change of light removed L* "):
        assert words in page
    assert page.count("data:image") >= 4
    table = (Path(folder).parent / "tables" / "measured.csv").read_text()
    assert {"displayed_lighter", "brighter", "light_shift_L", "skin_delta_L_raw"} <= set(
        table.splitlines()[0].split(",")
    )


def test_cases_of_a_reading_are_ordered_by_its_size(report):
    _, study = report
    finding = next(f for f in study.results().findings if f.measure == "gap.displayed_lighter")
    table = study.table()
    values = next(r.values for r in table.readings if r.measure == "mean.skin_delta_L_raw")
    size = dict(zip(table.edits["request_id"], values, strict=True))
    shown = [size[ident] for ident in finding.cases]
    assert shown == sorted(shown, reverse=True) and len(shown) == 6


def test_outlines_and_lines_of_a_pair():
    person = sample({"race": "Indian", "gender": "Female", "age": "30s"}, 1)
    pair = render(person), render(lighten(person, 8))
    both = np.asarray(skin_outlines(*pair), dtype=int)
    green = (both[..., 1] - both[..., 0] > 80) & (both[..., 1] - both[..., 2] > 40)
    half = both.shape[1] // 2
    assert green[:, :half].sum() > 200 and green[:, half:].sum() > 200
    measured = measure(*pair, identity=False)
    assert all(" L* +" in line for line in skin_lines(measured.to_json(), {})[::2])
    blank = skin_lines({"skin_delta_L_low": -0.04, "skin_delta_L_high": 7.5}, {"skin_delta_L": "no light"})
    assert blank[2] == "skin, change of light removed L* between +0.0 and +7.5 (no light)"
    assert blank[0] == "skin as displayed not measured (not measured)"


@pytest.mark.parametrize(
    ("low", "high", "answer", "above"),
    [
        (4.0, 12.0, 4, 1.0),
        (-12.0, -4.0, 2, 0.0),
        (-2.0, 2.5, 3, 0.0),
        (-1.0, 8.0, None, np.nan),
        (None, None, None, np.nan),
    ],
)
def test_an_interval_counts_only_where_it_lies_on_one_side(low, high, answer, above):
    person = sample({"race": "White", "gender": "Male", "age": "30s"}, 2)
    measured = measure(render(person), render(person), identity=False)
    changed = {
        f"{name}_{end}": at
        for name in ("skin_delta_L", "skin_delta_L_raw")
        for end, at in (("low", low), ("high", high))
    }
    reasons = dict.fromkeys(("skin_delta_L", "skin_delta_L_raw"), "no light")
    doubtful = replace(measured, skin_delta_L=None, skin_delta_L_raw=None, reasons=reasons, **changed)
    context = PairContext.of_measurement(Prompt("p", "Add a hat.", "Own"), "baseline", doubtful)
    instrument = SkinInstrument()
    read = instrument.read(UNSEEN, UNSEEN, context)
    assert read["skin_tone"].value == answer and (answer is not None or read["skin_tone"].reason)
    spec = InstrumentSpec.of(instrument, "skin", default_rubric())
    rater = type("Rater", (), {"id": "skin", "spec": spec})()
    numbers = {
        f"{n}{e}": at
        for n, r in read.items()
        if n in spec.numbers
        for e, at in (("", r.value), ("_low", r.low), ("_high", r.high))
    }
    readings = {r.measure: r for r in _as_readings(rater, 1, {0: (numbers, reasons)})}
    lighter = readings["rate.displayed_lighter"]
    assert np.array_equal(lighter.values, [above], equal_nan=True)
    assert bool(lighter.reasons[0]) == bool(np.isnan(above))


@pytest.mark.parametrize(
    ("kinds", "name"),
    [(("clothing",), "unchanged"), (("quality",), "unchanged_allowed"), ((), "unchanged_unstated")],
)
def test_unchanged_counts_as_a_failure_only_where_the_request_must_show(kinds, name):
    person = sample({"race": "White", "gender": "Male", "age": "30s"}, 2)
    same = measure(render(person), render(person), identity=False)
    context = PairContext.of_measurement(Prompt("p", "Do it.", "Own", asks_for=kinds), "baseline", same)
    read = ChangeInstrument().read(UNSEEN, UNSEEN, context)
    counted = {key for key in as_raters.UNCHANGED if read[key].value is not None}
    assert counted == {name} | ({"ignored"} if name == "unchanged" else set())
    assert read[name].value == 1.0


def measured_table(asks=None):
    """Four groups of six faces on five prompts; of one group a third of the edits has no measurement."""
    rows = [edit(face(race, copy=k), prompt) for race, k, prompt in product((*RACES, "Latino"), range(6), "abcde")]
    black = np.array([row["race"] == "Black" for row in rows])
    missing = black & (np.arange(len(rows)) % 3 == 0)
    lighter = np.where(missing, np.nan, np.where(black, 1.0, 0.0))
    raw = np.where(missing, 9.0, np.where(black, 5.0, 0.0))
    none, why = ("",) * len(rows), tuple("no light" if one else "" for one in missing)
    readings = (Reading("skin", "rate.brighter", lighter, why), Reading("skin", "mean.skin_delta_L_raw", raw, none))
    table = table_of(rows, {"skin": [{"skin_tone": 3}] * len(rows)}, (Kind.INSTRUMENT,))
    return replace(table, readings=readings, asks=asks or {}), int(missing.sum())


def test_rates_of_instruments_have_bounds_and_the_direction_of_the_unmeasured():
    table, missing = measured_table()
    results = analyse(table, AnalysisRules.default())
    (measured,) = results.measured
    black = next(b for b in measured.bounds if b.group == LIFTED and b.editor and b.measure == "rate.brighter")
    assert (black.low, black.high) == ((30 - missing) / 30, 1.0), "Manski: every missing edit is one or the other"
    assert (black.raw_measured, black.raw_missing) == (5.0, 9.0)
    gap = next(b for b in results.bounds if (b.measure, b.editor, b.factor) == ("gap.brighter", "e", "race"))
    assert (gap.rater, gap.low, gap.high, gap.missing) == ("skin", (30 - missing) / 30, 1.0, missing)
    finding = next(f for f in results.findings if f.measure == "gap.brighter")
    assert any("unmeasured edits counted either way" in c and "66.7% and 100.0%" in c for c in finding.caveats)
    assert any("+9.0 L* on average" in c and "+5.0 L* in the others" in c for c in finding.caveats)
    shift = next(f for f in results.findings if f.measure == "rate.brighter")
    assert f"{missing} without a measurement, with which it lies between 16.7% and 25.0%" in shift.text


def test_prompts_that_ask_for_lighter_skin_are_left_out_of_the_shift_and_not_of_the_gap():
    table, _ = measured_table({"a": ("skin_tone",)})
    findings = analyse(table, AnalysisRules.default()).findings
    shift = next(f for f in findings if f.measure == "shift.brighter")
    gap = next(f for f in findings if f.measure == "gap.brighter")
    assert shift.n is not None and gap.n is not None and "asks for such a change" in " ".join(shift.caveats)
    assert shift.n < len(table.edits) - int((table.edits["prompt_id"] == "a").sum()) + 1
    assert not any(f.measure == "rate.brighter" for f in findings)


def test_the_instruments_do_not_deny_what_one_of_them_read():
    rows = [edit(face(race, copy=k), prompt) for race, k, prompt in product(RACES, range(3), "ab")]
    table = table_of(rows, {"gender": [{"gender_drift": 1}] * len(rows)}, (Kind.INSTRUMENT,))
    (text,) = [f.text for f in analyse(table, AnalysisRules.default()).findings if "No judge" in f.text]
    assert "they did not read race change." in text


def test_an_audit_uses_what_is_installed_and_names_what_is_not_set_up(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    reasons = instruments_at_hand()
    assert not reasons["skin"] and not reasons["change"] and not reasons["people"]
    assert "evenedit plugins age --setup" in reasons["age"] and reasons["gender"] == reasons["age"]
