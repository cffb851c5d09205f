"""Tables about who rated: the paper's Table 17, and how people's ratings depend on who they are."""

from __future__ import annotations

from evenedit.protocol import QUESTIONS
from evenedit.protocol.measures import Measure
from evenedit.report.render.index import RATES, Index
from evenedit.report.render.table import Cell, Column, Number, Table, table_of, text
from evenedit.results.rater_groups import RaterRate

OTHER = "Other answers, none of which may be shown by itself"
KINDS = {
    "level": "some group rates higher",
    "pattern": "differs by group of portraits",
    "own": "portraits of their own group",
}
HOLDS = {
    "yes": "yes",
    "same_direction": "same direction",
    "opposite_direction": "other direction",
    "opposite": "no: the opposite",
    "unknown": "not rated",
}
ALL_RATERS, WEIGHTED = "", "*"


def participants(index: Index) -> Table | None:
    """Table 17 of the paper: who rated, without cells below five people."""
    rows: list[tuple[Cell, ...]] = []
    for c in index.results.participants:
        cells = [*c.counts.items(), *([(OTHER, c.rest)] if c.rest else [])]
        about = c.title if c.mean is None else f"{c.title} ({c.mean:.1f} ± {c.deviation:.1f} years)"
        rows += [(c.survey, about, answer, n, Number(n / c.people, "share", n=c.people)) for answer, n in cells]
    people = ", ".join(
        f"{c.people} in survey {c.survey}" for c in {c.survey: c for c in index.results.participants}.values()
    )
    return table_of(
        index,
        "table17",
        "Participants",
        f"What the people whose ratings count said about themselves, or told their platform ({people}).",
        (
            *(Column("survey", "Survey"), text("question", "Question"), text("answer", "Answer")),
            *(Column("people", "People"), Column("share", "Share")),
        ),
        rows,
        notes=(
            "Shares are of all participants of the survey. Missing: not asked, no consent, not answered, taken back or "
            "expired. No number below 5 is shown, nor any from which one could be worked out; for the same reason ages "
            "have no range.",
        ),
    )


def rater_tests(index: Index) -> Table | None:
    """Build the table of tests whether groups of raters rate differently."""
    rows: list[tuple[Cell, ...]] = [
        (
            _question(index, t.question),
            KINDS[t.kind],
            index.factor_label(t.factor) if t.factor else "–",
            QUESTIONS[t.axis].title,
            Number(t.value, "change", t.low, t.high),
            Number(t.p, "p"),
            Number(t.p_adjusted, "p"),
            *(t.raters, t.n),
        )
        for t in index.results.rater_tests
    ]
    return table_of(
        index,
        "rater_tests",
        "Do groups of raters rate differently?",
        "People's scores of baseline outputs (1–5), freed of what the output gets from everybody and, but for the "
        "first kind of test, of how severe the rater is with everybody. Own group: how many points higher people rate "
        "portraits whose label corresponds to their own group than other people do.",
        (
            *(
                text("question", "Raters by"),
                text("test", "Test"),
                text("factor", "Portraits by"),
                text("axis", "Axis"),
            ),
            *(Column("value", "Points"), Column("p", "p"), Column("p_adjusted", "p, all tests")),
            *(Column("raters", "raters"), Column("n", "ratings")),
        ),
        rows,
        notes=(
            "Groups are permuted over raters and, where portraits are grouped, labels over faces as well; p is the "
            "larger of both, adjusted for every test of the table (Westfall and Young). All raters "
            "whose ratings count.",
        ),
    )


def rater_holds(index: Index) -> Table | None:
    """Build the table of whether each finding holds for raters of each group."""
    texts = {f.id: f.text for f in index.results.findings}
    rows: list[tuple[Cell, ...]] = [
        (
            texts.get(h.finding, h.finding),
            f"{_question(index, h.question)}: {h.raters}" if h.raters else "everybody who rated",
            Number(h.value, "points", h.low, h.high),
            HOLDS[h.holds],
            *(h.people, h.n),
        )
        for h in index.results.findings_by_rater_group
        if h.raters or h.question == index.results.findings_by_rater_group[0].question
    ]
    return table_of(
        index,
        "rater_holds",
        "Does it hold for raters of each group?",
        "Each clear or suggestive finding of the judges, looked for in the ratings of one group of people alone. Yes: "
        f"the whole {index.level} interval is on that side.",
        (
            *(Column("finding", "Finding", numeric=False, prose=True), text("raters", "Raters")),
            *(Column("value", "Their difference"), text("holds", "Holds")),
            *(Column("people", "people"), Column("n", "ratings")),
        ),
        rows,
        notes=("Intervals take ratings of one person and of one face as dependent; they are not adjusted.",),
    )


def rater_rates(index: Index) -> Table | None:
    """People's rates by group of raters, and weighted."""
    rates_by_raters: dict[tuple[str, str], dict[str, RaterRate]] = {}
    for r in index.results.rater_rates:
        if not r.group:
            rates_by_raters.setdefault((r.question, r.raters), {})[Measure(r.measure).name] = r
    columns = [rate for rate in RATES if any(rate in rates for rates in rates_by_raters.values())]
    rows: list[tuple[Cell, ...]] = []
    for (question, raters), rates in rates_by_raters.items():
        who = {ALL_RATERS: "everybody", WEIGHTED: "everybody, weighted"}.get(raters, raters)
        first = next(iter(rates.values()))
        numbers = [_number(rates.get(rate)) for rate in columns]
        rows.append((_question(index, question), who, *numbers, first.people))
    weights = {
        r.question: r.method.rpartition("post-stratified ")[2]
        for r in index.results.rater_rates
        if r.raters == WEIGHTED
    }
    weighting = "; ".join(f"{_question(index, q)} {w}" for q, w in weights.items())
    return table_of(
        index,
        "rater_rates",
        "People's rates by who rated",
        "Shares of people's ratings of baseline outputs that meet each threshold.",
        (
            *(text("question", "Raters by"), text("raters", "Raters")),
            *(Column(rate, RATES[rate]) for rate in columns),
            Column("people", "people"),
        ),
        rows,
        notes=(
            f"Weighted (post-stratified): {weighting}. By group of portraits in results.json (rater_rates). With "
            "ratings of single people (ratings.csv of the survey's export) at hand, exact rates of a group can give "
            "away who is in it: publish one of the two. The report's ratings.csv.gz is without people for that "
            "reason.",
        ),
    )


def _number(rate: RaterRate | None) -> Number:
    return Number(rate.value, "share", rate.low, rate.high, rate.n) if rate else Number(None, "share")


def _question(index: Index, name: str) -> str:
    """Return the printed name of what raters are grouped by."""
    return next((c.title for c in index.results.participants if c.question == name), name)
