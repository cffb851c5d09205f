"""A question that a study declares is in every place that shows questions or rates."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from evenedit.cases.casebook import Casebook
from evenedit.cases.grids import caption
from evenedit.cases.search import Gallery
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind, Status
from evenedit.gate.gate import GateAnswer, check, parse_rule_for
from evenedit.protocol.questions import read_rows
from evenedit.protocol.rubric import default_rubric, shipped_rubric
from evenedit.ratings.combine import combine
from evenedit.ratings.table import STATUSES, RatingTable
from evenedit.report.contents import all_figures, all_tables
from evenedit.report.render.index import Index
from evenedit.report.render.selection import CaseLinks, Selection
from evenedit.report.text.human_evaluation import human_evaluation
from evenedit.report.text.summary import summarise
from evenedit.report.text.vlm_human import vlm_human_agreement
from evenedit.reporting.case_pages import ReportCases
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules, StudyFacts, analyse
from tests.support.declared import DECLARED, declared_answers, declared_table
from tests.support.studies import open_study


def analysed(table: RatingTable) -> Results:
    rules = replace(AnalysisRules.default(), rates=table.rubric.rates, draws=60, permutations=99)
    return analyse(table, rules, StudyFacts(provenance={}))


@dataclass(frozen=True)
class Shown:
    """The results of a study with declared questions, and its gallery."""

    results: Results
    gallery: Gallery

    @cached_property
    def tables(self) -> Mapping[str, str]:
        return {id: table.to_csv() for id, table in all_tables(Index(self.results)).items()}

    @cached_property
    def figures(self) -> Mapping[str, str]:
        return {id: figure.svg for id, figure in all_figures(Index(self.results)).items()}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    study = open_study(tmp_path_factory.mktemp("declared"), questions=DECLARED, judges=[])
    study.run()
    table = study.table()
    answers = declared_answers(table.rubric, list(table.edits["race"]))
    rated = replace(
        table,
        raters=("judge",),
        kinds=(Kind.VLM,),
        values=answers[None],
        status=np.full((1, len(answers)), STATUSES.index(Status.SCORED), dtype=np.int8),
        confidence=None,
        readings=(),
        null_pairs=None,
    )
    scores = combine(rated, AnalysisRules.default().ensemble, "exclude")
    yield Shown(analysed(declared_table()), Gallery(Casebook.of(study, scores)))
    study.store.close()


def gate_rules(shown: Shown) -> str:
    """Return the evidence of a rule on each declared rate, mean and share."""
    rules = [
        *("rate.hair_changed <= 0.9", "gap.hair_changed[race] <= 1", "mean.hair_change <= 4"),
        *("rate.headscarf_removed <= 0.9", "share.headscarf[removed] <= 0.9", "share.headscarf[CANNOT_TELL] <= 0.5"),
        *("rate.fingers <= 0.9", "share.artefacts.extra_fingers[yes] within 0.9", "shift.fingers <= 0.9"),
    ]
    outcomes = check(shown.results, [parse_rule_for(rule, shown.results) for rule in rules], ["e"])
    assert {o.answer for o in outcomes} == {GateAnswer.PASS}
    return " ".join(outcome.rule for outcome in outcomes)


PLACES: dict[str, Callable[[Shown], str]] = {
    "Table 4 or the answers": lambda s: s.tables["table4"] + s.tables["answers"],
    "Table 19": lambda s: s.tables["table19"],
    "the figure of rates": lambda s: s.figures["figure_rates"],
    "the figure of gaps": lambda s: s.figures["figure_gaps"].replace("</text>", "").replace("\n", " "),
    "a finding": lambda s: " ".join(str(f.measure) for f in s.results.findings),
    "the summary": lambda s: " ".join(sentence.text for sentence in summarise(s.results)),
    "the filter of the gallery": lambda s: " ".join(s.gallery.fields),
    "the page of cases": lambda s: ReportCases(s.gallery, "none")._list().to_json(),
    "the caption of a picture": lambda s: " ".join(
        caption(s.gallery.book.scores.table.rubric, s.gallery.book.scores_of(row)) for row in range(len(s.gallery))
    ),
    "the gate": gate_rules,
    "to_frame": lambda s: " ".join(s.results.to_frame()["measure"]),
    "results.json": lambda s: " ".join(Results.from_json(s.results.to_json()).full_rubric.columns),
}
"""The places that show every question; each must have each declared question."""
WORDS = {
    "hair_change": ("hair_change", "Hair", "hair"),
    "headscarf": ("headscarf", "Headscarf"),
    "artefacts": ("artefacts", "fingers", "Extra"),
}
"""By question, the words that stand for it: its id, or a word of its title or of its rate's."""


@pytest.mark.parametrize("place", PLACES)
def test_every_place_has_every_declared_question(shown: Shown, place: str) -> None:
    text = PLACES[place](shown)
    absent = [question for question, words in WORDS.items() if not any(word in text for word in words)]
    assert not absent, f"{place} lacks {', '.join(absent)}"


def test_the_caption_of_means_states_the_scale_of_each_question(shown: Shown) -> None:
    text = all_tables(Index(shown.results))["table4"].caption
    assert text.startswith(
        "Scale 1–5, hair change 1–4. Edit success: 5 = fully applied. Skin tone: 3 = unchanged, above"
    )
    assert "Race and gender change: 1 = same." in text and text.endswith("Hair change: 1 = same.")


def test_the_answers_have_each_option_with_its_words(shown: Shown) -> None:
    rows = all_tables(Index(shown.results))["answers"].to_html()
    assert all(word in rows for word in ("Removed", "Cannot tell", "changed", "Extra fingers", "Text"))


def test_a_share_leads_to_the_cases_with_that_answer(shown: Shown) -> None:
    link = CaseLinks(Index(shown.results), "cases.html#")
    share = shown.results.estimate("share.headscarf[removed]", editor="e")
    assert link(Selection.of(share)).endswith("headscarf=3")
    chosen = shown.results.estimate("share.artefacts.extra_fingers[yes]", editor="e")
    pairs = [("artefacts.extra_fingers", "1")]
    assert link(Selection.of(chosen)).endswith("artefacts.extra_fingers=1")
    found = shown.gallery.search(shown.gallery.wanted(pairs)).rows
    values = shown.gallery.book.scores.of("artefacts.extra_fingers")
    assert len(found) == (values == 1).sum() > 0


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("share.headscarf[lost] <= 0.1", "share.headscarf[lost] is not known"),
        ("mean.headscarf <= 1", "mean.headscarf is not known"),
        ("rate.hair <= 1", "rate.hair is not known"),
    ],
)
def test_a_rule_on_what_was_not_asked_is_refused(shown: Shown, rule: str, problem: str) -> None:
    with pytest.raises(EvenEditError) as caught:
        parse_rule_for(rule, shown.results)
    assert problem in str(caught.value)


def test_a_report_of_the_short_form_has_its_rates_and_no_skin_tone(tmp_path: Path) -> None:
    full = declared_table()
    rubric = shipped_rubric("short-002")
    rng = np.random.default_rng(3)
    values = np.zeros((2, len(full.edits), len(rubric.columns)), dtype=np.int8)
    values[:, :, rubric.at("edit_applied")] = rng.choice([1, 2, 3], len(full.edits))
    values[:, :, rubric.at("gender_changed")] = 2
    values[:, :, rubric.at("race_changed")] = np.where(full.edits["race"] == "Black", 1, 2)
    results = analysed(replace(full, values=values, rubric=rubric))
    tables, figures = all_tables(Index(results)), all_figures(Index(results))
    assert "Race change (= Yes)" in [c.title for c in tables["table19"].columns]
    assert "table20" in tables and figures["figure4"].title.startswith("Race change by")
    assert tables["table4"].caption == "Scale 1–3. Edit applied: 3 = yes."
    assert [s.text for s in summarise(results)]


def test_a_report_with_people_compares_their_choices_with_the_judges(shown: Shown) -> None:
    table = declared_table()
    rated = replace(
        table,
        raters=(*table.raters, "person-1", "person-2"),
        kinds=(*table.kinds, Kind.HUMAN, Kind.HUMAN),
        values=np.concatenate([table.values, table.values]),
        status=np.concatenate([table.status, table.status]),
    )
    results = analysed(rated)
    rows = all_tables(Index(results))["judges_people_labels"].to_csv()
    assert rows.index("Race changed") < rows.index("Headscarf") < rows.index("Artefacts: Extra fingers")
    assert set(json.loads(vlm_human_agreement(results) or "")["vlm_human"]) > {"race_drift", "headscarf"}
    text = human_evaluation(Index(results), {})
    assert text is not None and "for headscarf" in text


def test_the_rates_of_results_stand_in_the_order_of_the_rubric(shown: Shown) -> None:
    assert shown.results.full_rubric.table_rates == declared_table().rubric.table_rates
    assert Results.from_json(shown.results.to_json()).full_rubric.table_rates == declared_table().rubric.table_rates


def test_of_what_only_people_answer_no_judges_answer_is_missing():
    rows, _ = read_rows([{**DECLARED[1], "answered_by": ["people"]}], "questions")
    table = declared_table()
    rubric = default_rubric().extended(rows)
    values = np.zeros((*table.values.shape[:2], len(rubric.columns)), dtype=np.int8)
    shared = list(default_rubric().columns)
    values[:, :, [rubric.at(c) for c in shared]] = table.values[:, :, [table.at(c) for c in shared]]
    results = analysed(replace(table, rubric=rubric, values=values))
    assert not [e for e in results.estimates if "headscarf" in e.measure]
    judged = np.where(np.arange(len(rubric.columns)) == rubric.at("headscarf"), 1, values).astype(np.int8)
    assert [e for e in analysed(replace(table, rubric=rubric, values=judged)).estimates if "headscarf" in e.measure]
