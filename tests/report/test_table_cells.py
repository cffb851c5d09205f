"""No CSV that EvenEdit writes holds a cell that a spreadsheet would run."""

import csv
import io

from evenedit.report.render.table import Column, Table


def test_a_group_named_like_a_formula_is_text_in_every_table() -> None:
    evil = ('=HYPERLINK("http://evil.example")', "+1+1", "@SUM(A1)", "-2+3")
    table = Table("t", "T", "", (Column("group", "Group", numeric=False),), tuple((name,) for name in evil))
    cells = [row[0] for row in csv.reader(io.StringIO(table.to_csv()))][1:]
    assert cells == [f"'{name}" for name in evil]
