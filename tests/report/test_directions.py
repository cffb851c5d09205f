"""The table and the heat maps of the levels that portraits and edits are seen as, and their rows in results.json."""

import csv
import io
import json

import numpy as np
import pytest

from evenedit.report.contents import FIGURES, TABLES, all_tables
from evenedit.report.figures.base import render_figure
from evenedit.report.render.index import Index
from evenedit.results.results import Results
from validation.direction import World, analysed

EMPTY = Results({}, {}, ())


@pytest.fixture(scope="module")
def results() -> Results:
    edits, r = World("w", prompts=4, turned=0.5, error=0.02).study(np.random.default_rng(2))
    directions, findings = analysed(edits, [r])
    return Results({}, {}, (), directions=tuple(directions), findings=tuple(findings))


def test_without_readings_there_is_neither_table_nor_figure_nor_key() -> None:
    assert TABLES["transitions"](Index(EMPTY)) is None and FIGURES["figure_transitions"](Index(EMPTY)) is None
    assert "transitions" not in all_tables(Index(EMPTY))
    assert "directions" not in json.loads(EMPTY.to_json()) and set(EMPTY.to_files()) == {"results.json"}


def test_directions_are_written_and_read_back(results: Results) -> None:
    files = results.to_files()
    assert Results.from_files(files.get) == results
    short = Results.from_json(files["results.json"].decode())
    kinds = {d.measure.partition(".")[0] for d in short.directions}
    assert kinds == {"rate", "mean", "toward", "flow"} - {"mean"}, "transitions and destinations are in the CSV file"
    assert len(results.to_frame("directions")) == len(results.directions) > len(short.directions)


def test_the_table_has_each_way_with_its_share_and_net_flow(results: Results) -> None:
    table = TABLES["transitions"](Index(results))
    assert table is not None
    rows = {
        (row["before"], row["after"], row["what"].split(",")[0]): row
        for row in csv.DictReader(io.StringIO(table.to_csv()))
    }
    by_measure = {d.measure: d for d in results.directions}
    for measure, place in {
        "transition.race_seen[Indian>White]": ("Indian", "White", "of those seen so before"),
        "flow.race_seen[White>Indian]": ("White", "Indian", "net"),
        "toward.race_seen[White]": ("", "White", "net"),
    }.items():
        d, row = by_measure[measure], rows[place]
        assert row["edits"] == (str(d.total) if measure.startswith("transition") else "")
        assert float(row["share"]) == pytest.approx(d.value)
        assert (row["p"] == "") == (d.p is None)
    assert not any(before == after for before, after, _ in rows)


def test_the_heat_map_counts_every_edit_that_was_read(results: Results) -> None:
    drawing = FIGURES["figure_transitions"](Index(results))
    assert drawing is not None
    cells = [text.get_text() for ax in drawing.figure.axes for text in ax.texts]
    changed = next(d for d in results.directions if d.measure == "rate.race_seen_changed")
    assert sum(int(cell.replace(",", "")) for cell in cells) == changed.n
    assert f"{changed.total:,} of {changed.n:,} edits" in drawing.alt
    assert "<svg" in render_figure(drawing, simulated=False).svg
