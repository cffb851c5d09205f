"""Reviewers settle what the judges leave open: when it counts, when it does not, and that nobody is overwritten."""

import json
import shutil
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evenedit.api.study import Study
from evenedit.cases.casebook import Casebook
from evenedit.cases.review_queue import ReviewQueue, StaleCaseError, rater_id, write_reviews
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Condition, Experiment, Kind, Request
from evenedit.operations.status import status_of
from evenedit.protocol import QUESTIONS
from evenedit.ratings.combine import combine, priority
from evenedit.ratings.from_csv import read_tables
from evenedit.ratings.reviews import Review, Reviews, settled, unresolved_questions
from evenedit.ratings.table import QUESTION_IDS
from evenedit.ratings.to_csv import write_tables
from evenedit.reporting.writer import report_study
from evenedit.stats import AnalysisRules, analyse
from evenedit.study.analysis import compute_results
from evenedit.web.rehearsal import rehearse
from tests.support.reviewing import CARELESS, settle
from tests.support.studies import open_study

ADA, BO, CY = "review:ada", "review:bo", "review:cy"


@pytest.fixture(scope="module")
def rated(tmp_path_factory) -> Path:
    """A small study, edited and rated by two careless judges."""
    folder = tmp_path_factory.mktemp("rated")
    open_study(folder, **CARELESS).run()
    return folder


@pytest.fixture
def study(rated, tmp_path):
    """The rated study under other rules of review, with no reviews yet."""
    opened = []

    def under(**ensemble) -> Study:
        if not opened:
            shutil.copytree(rated, tmp_path / "study")
        opened.append(open_study(tmp_path / "study", **CARELESS, ensemble=ensemble))
        return opened[-1]

    yield under
    for loaded in opened:
        loaded.store.close()


def answered(*reviews: Review) -> list[Mapping[str, int]]:
    return [review.answers for review in reviews]


def review(number: int, **answers: int) -> Review:
    return Review(number, "r", f"review:r{number}", answers, "", "2026-01-01")


# -- the rule ------------------------------------------------------------------------------------------------


def test_one_reviewer_settles_what_was_answered_and_nothing_else():
    assert settled(answered(review(1, skin_tone=4)), 1) == {"skin_tone": 4}
    assert settled([], 1) == {}


def test_two_reviewers_within_one_point_settle_their_mean_half_up_and_further_apart_nothing():
    first, second = review(1, skin_tone=2, race_drift=1, age_drift=5), review(2, skin_tone=3, race_drift=3, age_drift=5)
    assert settled(answered(first), 2) == {}, "one of two is not enough"
    assert settled(answered(first, second), 2) == {"skin_tone": 3, "age_drift": 5}  # (2 + 3) / 2 = 2.5, half up
    assert unresolved_questions([first, second]) == ("race_drift",)


def test_a_third_look_settles_where_two_are_apart_and_nowhere_else():
    reviews = [review(1, skin_tone=2, race_drift=1), review(2, skin_tone=3, race_drift=5), review(3, race_drift=2)]
    assert settled(answered(*reviews), 2) == {"skin_tone": 3, "race_drift": 2}


def test_answers_without_order_are_settled_by_two_who_say_the_same():
    assert settled(answered(review(1, stereotype=1), review(2, stereotype=1)), 2) == {"stereotype": 1}
    assert unresolved_questions([review(1, stereotype=1), review(2, stereotype=2)]) == ("stereotype",)


def test_what_one_of_two_left_open_is_settled_by_nobody():
    assert settled(answered(review(1, skin_tone=2, age_drift=4), review(2, skin_tone=2)), 2) == {"skin_tone": 2}


# -- the queue -----------------------------------------------------------------------------------------------


def test_disputed_cases_come_first_then_those_of_high_priority_in_an_order_that_never_changes(study):
    loaded = study()
    queue = ReviewQueue(loaded)
    scores = combine(loaded.table(), {}, "exclude")
    idents = scores.edits["request_id"].to_numpy(dtype=str)
    high = set(idents[priority(scores) == "high"])
    disputed = set(idents[scores.needs_review])
    assert disputed and high - disputed, "the study must have both kinds for this test to say anything"
    assert list(queue.cases) == [*sorted(disputed), *sorted(high - disputed)]
    assert all(bool(case.disputed) == (ident in disputed) for ident, case in queue.cases.items())
    settle(queue, ADA, next(iter(queue.cases)))
    assert list(ReviewQueue(study(review="settles")).cases) == list(queue.cases), "what is settled moves no case"


def test_a_reviewer_is_offered_what_waits_and_a_skipped_case_comes_back_at_the_end(study):
    queue = ReviewQueue(study())
    order = list(queue.cases)
    assert queue.next(ADA).request_id == order[0]
    assert queue.next(ADA, after=order[0]).request_id == order[1]
    assert queue.next(ADA, after=order[-1]).request_id == order[0]
    settle(queue, ADA, order[0])
    assert queue.next(ADA).request_id == queue.next(BO).request_id == order[1]
    queue.hold(order[1], ADA)
    assert queue.next(BO).request_id == order[2], "Ada looks at it"
    for ident in order[1:]:
        settle(queue, ADA, ident)
    assert queue.next(ADA) is None and queue.next(BO) is None
    standing = queue.standing()
    assert (standing.waiting, standing.done, standing.reviewers) == (0, len(order), 1)


def test_only_cases_of_the_queue_can_be_settled(study):
    loaded = study()
    queue = ReviewQueue(loaded)
    other = next(i for i in loaded.table().edits["request_id"] if i not in queue.cases)
    with pytest.raises(EvenEditError, match="not in the review queue"):
        queue.form(other, ADA)


def test_every_wrong_answer_is_told_and_nothing_is_written(study):
    queue = ReviewQueue(study())
    case = next(iter(queue.cases.values()))
    version = queue.form(case.request_id, ADA).version
    with pytest.raises(EvenEditError, match="please settle: ") as told:
        queue.settle(case.request_id, ADA, {"fame": 3, "gender_drift": 6}, "x" * 2001, version)
    assert len(told.value.problems) == 4
    assert queue.reviews.history() == []


@pytest.mark.parametrize("name", ["", "a", "a b", "=cmd", "simulated-ada", "x" * 41, "a\n"])
def test_a_name_that_could_mislead_is_refused(name):
    with pytest.raises(EvenEditError):
        rater_id(name)


def test_names_are_the_same_in_any_case():
    assert rater_id(" Ada ") == ADA
    assert rater_id("수진") == "review:수진"


# -- what counts ---------------------------------------------------------------------------------------------


def test_settled_values_reach_the_results_when_the_study_says_so_and_never_otherwise(study):
    shown = study()
    before = compute_results(shown, shown.table())
    queue = ReviewQueue(shown)
    ident, case = next(iter(queue.cases.items()))
    question = case.disputed[0]
    row = shown.table().edits["request_id"].tolist().index(ident)
    judged = combine(shown.table(), {}, "exclude")
    other = 1 if judged.values[row, QUESTION_IDS.index(question)] > 3 else 5
    settle(queue, ADA, ident, **{question: other})

    after = compute_results(shown, shown.table())
    assert after.estimates == before.estimates and after.tests == before.tests
    assert after.multiverse == before.multiverse and after.sensitivity == before.sensitivity
    assert after.counts["needs_review"] == before.counts["needs_review"]
    assert after.rules["ensemble"]["review"] == "shown"
    assert after.counts["reviewed"] == 1 and after.counts[f"settled.{question}"] == 1

    settles = study(review="settles")
    found = compute_results(settles, settles.table())
    assert found.rules["ensemble"]["review"] == "settles" and found.rules["ensemble"]["reviewers"] == "1"
    assert found.counts[f"settled.{question}"] == 1
    assert found.estimates != before.estimates
    scores = combine(settles.table(), found.rules["ensemble"], "exclude")
    assert scores.values[row, QUESTION_IDS.index(question)] == other
    assert not scores.disagree[row, [QUESTION_IDS.index(q) for q in case.disputed]].any()
    assert found.counts["needs_review"] == before.counts["needs_review"] - 1
    changed = scores.values != judged.values
    assert set(zip(*np.nonzero(changed), strict=True)) <= {(row, QUESTION_IDS.index(q)) for q in case.disputed}


def test_the_mean_of_an_axis_moves_by_what_was_settled_over_the_number_of_edits(study):
    loaded = study()
    queue = ReviewQueue(loaded)
    ident = next(i for i, case in queue.cases.items() if "race_drift" in case.questions)
    scores = combine(loaded.table(), {}, "exclude")
    row = scores.edits["request_id"].tolist().index(ident)
    settle(queue, ADA, ident, race_drift=5)
    was = compute_results(loaded, loaded.table()).find("mean.race_drift", editor="simulated-lightening")
    settles = study(review="settles")
    now = compute_results(settles, settles.table()).find("mean.race_drift", editor="simulated-lightening")
    step = (5 - int(scores.values[row, QUESTION_IDS.index("race_drift")])) / was.n
    assert now.n == was.n and now.value == pytest.approx(was.value + step)


def test_reviews_are_neither_judges_nor_people(study):
    """Every statistic of judges and of people is the same to the last bit, whatever reviewers settle."""
    survey = {"cases": 12, "simulated_people": 3, "raters_per_item": 3, "items_per_task": 12, "instructed": 0}
    loaded = study(review="settles")
    people = open_study(loaded.file.folder, **CARELESS, ensemble={"review": "settles"}, survey=survey)
    rehearse(people)
    before = compute_results(people, people.table())
    assert before.agreement and before.powered
    queue = ReviewQueue(people)
    for ident in list(queue.cases):
        sheet = queue.form(ident, ADA)
        queue.settle(ident, ADA, {q.id: 5 for q in sheet.questions}, "", sheet.version)
    after = compute_results(people, people.table())
    assert after.estimates != before.estimates, "the reviews must matter for this test to say anything"
    for part in ("agreement", "per_judge", "coverage", "coverage_tests", "powered", "measured"):
        assert getattr(after, part) == getattr(before, part), part
    assert after.simulated == before.simulated
    table = people.table()
    assert [table.raters[i] for i in table.of_kind(Kind.REVIEW)] == [ADA]
    assert ADA not in [table.raters[i] for kind in (Kind.VLM, Kind.HUMAN) for i in table.of_kind(kind)]
    people.store.close()


def test_a_review_opens_no_question_that_nobody_was_asked(study):
    loaded = study()
    table = loaded.table()
    values = np.concatenate([table.values, np.zeros_like(table.values[:1])])
    values[-1, :, QUESTION_IDS.index("aging_accuracy")] = 3  # a judge's would stand for age_drift on every prompt
    status = np.concatenate([table.status, np.zeros_like(table.status[:1])])
    reviewed = replace(
        table,
        raters=(*table.raters, ADA),
        kinds=(*table.kinds, Kind.REVIEW),
        values=values,
        status=status,
        confidence=None,
    )
    rules = AnalysisRules("default", draws=100, permutations=99)
    plain = analyse(replace(table, confidence=None), rules)
    assert analyse(reviewed, rules).estimates == plain.estimates


def test_an_export_holds_the_reviews_and_is_read_back_as_it_was(study, tmp_path):
    loaded = study()
    queue = ReviewQueue(loaded)
    ident, other = list(queue.cases)[:2]
    gone = settle(queue, ADA, ident, note="first thought", race_drift=5)
    queue.undo(gone.id, ADA)
    settle(queue, ADA, ident, note="=1+1", race_drift=4)
    settle(queue, BO, other)
    table = loaded.table()
    paths = write_tables(table, tmp_path / "out")
    again = read_tables([p for p in paths if p.name == "scores.csv"])
    assert again.raters == table.raters and again.kinds == table.kinds
    assert [again.kinds[i] for i in again.of_kind(Kind.REVIEW)] == [Kind.REVIEW] * 2
    frame = queue.frame()
    race = frame[(frame["request_id"] == ident) & (frame["question"] == "race_drift")]
    assert race["value"].tolist() == [5, 4] and race["settled"].tolist() == [4, 4]
    assert [bool(u) for u in race["undone"]] == [True, False]
    assert race["label"].tolist() == [QUESTIONS["race_drift"].labels[4], QUESTIONS["race_drift"].labels[3]]


def test_status_export_and_report_tell_of_reviews(study, tmp_path):
    loaded = study(reviewers=2, review="settles")
    queue = ReviewQueue(loaded)
    ident = next(i for i, c in queue.cases.items() if "race_drift" in c.questions)
    settle(queue, ADA, ident, note="=1+1", race_drift=1)
    told = str(status_of(loaded))
    assert f"review: {len(queue.cases)} cases wait" in told and "0 settled by 1 reviewers (review = settles)" in told
    assert "1 wait for the second reviewer, 0 for a third review" in told
    assert write_reviews(loaded, tmp_path) == [], "the second reviewer must not see the first's"
    settle(queue, BO, ident, race_drift=2)
    assert "1 settled by 2 reviewers" in str(status_of(loaded))
    (path,) = write_reviews(loaded, tmp_path)
    assert "'=1+1" in path.read_text(), "no spreadsheet runs a note"
    page = report_study(loaded, tmp_path / "report").read_text() + (tmp_path / "report/appendix.html").read_text()
    results = json.loads((tmp_path / "report" / "results.json").read_text())
    assert results["counts"]["settled.race_drift"] == 1 and results["rules"]["ensemble"]["review"] == "settles"
    assert "Reviewers looked at 1 edits" in page and "they replace the judges" in page
    assert "review: settles; reviewers: 2" in page


# -- two reviewers -------------------------------------------------------------------------------------------


def test_two_reviewers_are_blind_to_each_other_until_both_are_in(study):
    loaded = study(reviewers=2)
    queue = ReviewQueue(loaded)
    ident = next(iter(queue.cases))
    settle(queue, ADA, ident, note="hair only", race_drift=1)
    assert loaded.table().of_kind(Kind.REVIEW) == [] and queue.frame().empty
    assert {o.kind for o in Casebook.read(loaded).open(ident).opinions} == {Kind.VLM}
    assert not queue.open(queue.cases[ident]).opinions[0].rater.startswith("review:")
    assert queue.next(ADA).request_id != ident
    assert queue.next(BO).request_id == ident
    settle(queue, BO, ident, race_drift=2)
    assert len(loaded.table().of_kind(Kind.REVIEW)) == 2
    told = Casebook.read(loaded).open(ident).opinions[-2:]
    assert [(o.rater, o.evidence, o.values["race_drift"]) for o in told] == [(ADA, "hair only", 1), (BO, "", 2)]
    assert {o.kind for o in queue.open(queue.cases[ident]).opinions} == {Kind.VLM}, "a third look is blind as well"


def test_a_third_reviewer_is_asked_only_where_two_are_apart_and_decides(study):
    loaded = study(reviewers=2, review="settles")
    queue = ReviewQueue(loaded)
    ident = next(i for i, c in queue.cases.items() if "race_drift" in c.questions)
    settle(queue, ADA, ident, race_drift=1)
    settle(queue, BO, ident, race_drift=4)
    assert queue.standing().third == 1 and queue.standing().done == 0
    with pytest.raises(StaleCaseError):
        queue.form(ident, ADA)
    sheet = queue.form(ident, CY)
    assert sheet.third and [q.id for q in sheet.questions] == ["race_drift"] == list(sheet.needed)
    with pytest.raises(EvenEditError, match="'age_drift' is not asked"):
        queue.settle(ident, CY, {"race_drift": 2, "age_drift": 3}, "", sheet.version)
    queue.settle(ident, CY, {"race_drift": 2}, "", sheet.version)
    assert queue.standing().third == 0 and queue.standing().done == 1
    table = loaded.table()
    row = table.edits["request_id"].tolist().index(ident)
    assert table.settled[row, QUESTION_IDS.index("race_drift")] == 2


def test_agreement_of_two_reviewers_by_hand(study):
    """Eight cases, answers 1 and 2 or 4: exact 4/8, within one 6/8; kappa from the margins below."""
    loaded = study(reviewers=2)
    queue = ReviewQueue(loaded)
    pairs = [(1, 1), (1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (2, 4), (1, 4)]
    idents = [i for i, c in queue.cases.items() if "race_drift" in c.questions][: len(pairs)]
    assert len(idents) == len(pairs)
    for ident, (a, b) in zip(idents, pairs, strict=True):
        settle(queue, ADA, ident, race_drift=a)
        settle(queue, BO, ident, race_drift=b)
    told = next(a for a in queue.agreement() if a.question == "race_drift")
    assert told.cases == 8
    assert told.exact.value == 4 / 8 and told.within_one.value == 6 / 8
    # Ada says 1 five times, 2 three times; Bo 1 four times, 2 twice, 4 twice: chance (5*4 + 3*2 + 0*2) / 64 = 26/64
    assert told.kappa.value == pytest.approx((4 / 8 - 26 / 64) / (1 - 26 / 64))
    assert told.exact.low is not None and told.exact.low < 0.5 < told.exact.high


# -- undo and lost updates -----------------------------------------------------------------------------------


def test_an_undo_takes_the_value_back_and_keeps_the_history(study):
    loaded = study(review="settles")
    queue = ReviewQueue(loaded)
    ident = next(iter(queue.cases))
    before = compute_results(loaded, loaded.table()).estimates
    done = settle(queue, ADA, ident, race_drift=5)
    assert queue.last(ADA) == done
    with pytest.raises(EvenEditError, match="you have no such review"):
        queue.undo(done.id, BO)
    assert queue.undo(done.id, ADA) == done
    assert queue.last(ADA) is None and compute_results(loaded, loaded.table()).estimates == before
    with pytest.raises(StaleCaseError, match="undone already"):
        queue.undo(done.id, ADA)
    assert [(r.id, r.undone is None) for r in queue.reviews.history()] == [(done.id, False)]


def test_nobody_takes_a_review_back_that_somebody_else_has_built_on(study):
    queue = ReviewQueue(study(reviewers=2))
    ident = next(iter(queue.cases))
    first = settle(queue, ADA, ident, race_drift=1)
    settle(queue, BO, ident, race_drift=1)
    with pytest.raises(StaleCaseError, match="someone else has reviewed this case since"):
        queue.undo(first.id, ADA)


def test_the_second_of_two_windows_is_told_and_writes_nothing(study):
    loaded = study()
    queue = ReviewQueue(loaded)
    ident, case = next(iter(queue.cases.items()))
    answers = dict.fromkeys(case.disputed, 2)
    mine, other = queue.form(ident, ADA), queue.form(ident, BO)
    queue.settle(ident, ADA, answers, "", mine.version)
    with pytest.raises(StaleCaseError, match="you have settled this case already"):
        queue.settle(ident, ADA, dict.fromkeys(case.disputed, 5), "", mine.version)
    with pytest.raises(StaleCaseError, match="ada settled this case before you"):
        queue.settle(ident, BO, dict.fromkeys(case.disputed, 5), "", other.version)
    assert [r.answers for r in queue.reviews.history()] == [answers]
    queue.undo(queue.last(ADA).id, ADA)
    with pytest.raises(StaleCaseError, match="open it again"):
        queue.settle(ident, ADA, answers, "", mine.version)


def test_who_opened_a_case_before_two_others_fell_apart_is_told_what_is_asked_now(study):
    queue = ReviewQueue(study(reviewers=2))
    ident = next(i for i, c in queue.cases.items() if "race_drift" in c.questions)
    late = queue.form(ident, CY)
    settle(queue, ADA, ident, race_drift=1)
    settle(queue, BO, ident, race_drift=5)
    with pytest.raises(StaleCaseError, match="open it again"):
        queue.settle(ident, CY, dict.fromkeys((*late.needed, "race_drift"), 3), "", late.version)


# -- both databases ------------------------------------------------------------------------------------------


def test_of_many_at_once_one_settles_a_case(store):
    """Ten reviewers save the same case in the same moment; the check lets in who finds it empty."""
    case = Request(Experiment.DIAGNOSIS, Condition.parse("baseline"), ("A",), "O-01", "Do it.", "e", {}, 42)
    store.save_requests([case])
    reviews, refused, start = Reviews(store), [], threading.Barrier(10)

    def check(history):
        if any(r.undone is None for r in history):
            raise StaleCaseError("somebody was first")

    def save(number: int) -> None:
        start.wait()
        try:
            reviews.add(case.id, f"review:r{number}", {"skin_tone": 3}, "", check)
        except StaleCaseError:
            refused.append(number)

    threads = [threading.Thread(target=save, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = reviews.history()
    assert len(kept) == 1 and len(refused) == 9
    reviews.undo(case.id, kept[0].id, lambda history: None)
    again = reviews.add(case.id, "review:bo", {"skin_tone": 4}, "seen twice", check)
    assert reviews.in_force() == {case.id: [again]} and len(Reviews(store).of(case.id)) == 2
    assert next(again.ratings()).kind is Kind.REVIEW and next(again.ratings()).reason == "seen twice"
    assert settled(answered(*reviews.in_force()[case.id]), 1) == {"skin_tone": 4}


def test_cases_are_dealt_evenly_and_offered_to_their_reviewers_alone(study) -> None:
    queue = ReviewQueue(study())
    raters = ["review:ada", "review:bo"]
    dealt = queue.deal(raters)
    assert sum(dealt.values()) == queue.standing().waiting and abs(dealt["review:ada"] - dealt["review:bo"]) <= 1
    mine = {case.request_id for case, _ in queue.waiting("review:ada")}
    theirs = {case.request_id for case, _ in queue.waiting("review:bo")}
    assert not mine & theirs and len(mine) == dealt["review:ada"]
    assert queue.waiting("review:cy") == [] and queue.next("review:cy") is None
    first = queue.next("review:ada")
    assert first is not None and first.request_id in mine
    settle(queue, "review:ada", first.request_id)
    loads = {load.rater: load for load in queue.workloads(raters)}
    assert (loads["review:ada"].done, loads["review:ada"].waiting) == (1, dealt["review:ada"] - 1)
    assert queue.deal([]) == {} and queue.next("review:cy") is not None, "everybody takes the next again"
