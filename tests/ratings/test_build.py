"""One way from an answer to the table, whoever gave it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from evenedit.core.records import Kind, Rating, Status
from evenedit.protocol import FACTORS
from evenedit.ratings.build import build_table
from evenedit.ratings.sources import RatingSource
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, STATUSES, edit_columns

SKIN, PREFERENCE = QUESTION_IDS.index("skin_tone"), QUESTION_IDS.index("preference")


@dataclass
class Given:
    """A rating source of given ratings."""

    kind: Kind
    raters: Sequence[str]
    given: Sequence[Rating]

    def ratings(self) -> Iterator[Rating]:
        yield from self.given


def edits(*idents: str) -> pd.DataFrame:
    return pd.DataFrame([dict.fromkeys(edit_columns(FACTORS), "") | {"request_id": ident} for ident in idents])


def rating(ident: str, question: str, rater: str, kind: Kind, status: Status = Status.SCORED, value: int | None = None):
    return Rating(ident, question, rater, kind, status, value)


def test_judges_instruments_people_and_reviewers_stand_in_the_order_of_their_sources():
    sources: list[RatingSource] = [
        Given(Kind.VLM, ["j1", "j2"], [rating("a", "skin_tone", "j2", Kind.VLM, value=4)]),
        Given(Kind.INSTRUMENT, ["skin"], [rating("a", "skin_tone", "skin", Kind.INSTRUMENT, value=5)]),
        Given(Kind.HUMAN, ["ann"], [rating("b", "skin_tone", "ann", Kind.HUMAN, value=2)]),
        Given(Kind.REVIEW, ["review:eve"], [rating("b", "skin_tone", "review:eve", Kind.REVIEW, value=3)]),
    ]
    table = build_table(edits("a", "b"), FACTORS, sources, reviewers=1)
    assert table.raters == ("j1", "j2", "skin", "ann", "review:eve")
    assert table.kinds == (Kind.VLM, Kind.VLM, Kind.INSTRUMENT, Kind.HUMAN, Kind.REVIEW)
    assert table.values[:, :, SKIN].tolist() == [[0, 0], [4, 0], [5, 0], [0, 2], [0, 3]]
    assert table.settled is not None and table.settled[:, SKIN].tolist() == [0, 3]


def test_a_call_without_an_answer_says_how_it_ended():
    refused = rating("a", "", "j", Kind.VLM, Status.REFUSED)
    table = build_table(edits("a", "b"), FACTORS, [Given(Kind.VLM, ["j"], [refused])])
    assert table.status.tolist() == [[STATUSES.index(Status.REFUSED), NOT_ASKED]]
    assert not table.values.any()


def test_a_judges_preference_says_nothing_about_the_call_that_rated_the_edit():
    given = [rating("a", "", "j", Kind.VLM, Status.FAILED), rating("a", "preference", "j", Kind.VLM, value=2)]
    for order in (given, given[::-1]):
        table = build_table(edits("a"), FACTORS, [Given(Kind.VLM, ["j"], order)])
        assert table.status[0, 0] == STATUSES.index(Status.FAILED)
        assert table.values[0, 0, PREFERENCE] == 2


def test_an_edit_that_is_not_in_the_table_is_passed_over_and_nothing_is_settled_unasked():
    stray = [rating("elsewhere", "skin_tone", "j", Kind.VLM, value=4)]
    table = build_table(edits("a"), FACTORS, [Given(Kind.VLM, ["j"], stray)])
    assert not table.values.any() and table.settled is None
