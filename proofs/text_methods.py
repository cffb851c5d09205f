"""The claims of the methods paragraph, and what other texts share with it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evenedit.core.records import Estimate, Kind
from evenedit.core.version import __version__
from evenedit.protocol import AXES
from proofs.text_claims import (
    Check,
    expect,
    fuller,
    joined,
    noun,
    pattern,
    percent,
)
from proofs.text_facts import Facts

TITLES = {
    "edit_success": "Edit success",
    "soft_erasure": "Soft erasure",
    "skin_lighter": "Skin rated lighter",
    "skin_darker": "Skin rated darker",
    "race_change": "Race change",
    "gender_change": "Gender change",
    "older": "Rated older",
    "younger": "Rated younger",
    "refused": "Refused",
    "unchanged": "Unchanged",
    "changed_share": "Share of the picture changed",
    "measured_skin_lighter": "Skin measured lighter",
    "measured_skin_darker": "Skin measured darker",
    "skin_delta_L": "Skin ΔL*",
}
RATE_OF = {title: rate for rate, title in TITLES.items()}
MEANS = ("changed_share", "skin_delta_L")
SAMPLERS = {
    "balanced": "drawn so that editors, prompts and labels stay as even as the cases allow",
    "strata": "drawn within strata of labels and editors",
    "priority": "chosen by review priority of their baseline",
    "drift": "chosen among those whose baseline was rated as changed",
    "": "how they were chosen is not recorded",
}


def rated_outputs(facts: Facts) -> int:
    """How many outputs people rated."""
    people = facts.raters(Kind.HUMAN)
    return int((facts.design.table.values[people] > 0).any(axis=(0, 2)).sum()) if people else 0


def was_asked(facts: Facts, rater: int) -> bool:
    """Whether an instrument was asked about edits of the diagnosis."""
    rows = set(facts.rows(None))
    return any(facts.design.table.status[rater][at] >= 0 for at in rows)


def only_pairs(facts: Facts) -> bool:
    """Whether no judge scored a scale on an edit of one portrait."""
    scored = facts.design.table.values[facts.raters(Kind.VLM)][:, :, : len(AXES)]
    return not scored.any()


def as_stated(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """A definition, or what cannot be wrong."""
    if m.re.groupindex.get("level"):
        yield from expect(m["level"], f"{100 * facts.design.rules.confidence:g}%", "confidence")


def portraits(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How many portraits, and how many with each label."""
    yield from expect(m["n"], fuller(facts.portraits()[""], "portrait"), "portraits")
    parts = []
    for factor in facts.results.factors:
        sizes = facts.portraits(factor)
        without = sizes.pop("", 0)
        if not sizes:
            continue
        same = len(set(sizes.values())) == 1 and len(sizes) > 1
        low, high = min(sizes.values()), max(sizes.values())
        if same:
            text = f"{len(sizes)} labels, {fuller(low, 'portrait')} each"
        elif len(sizes) <= 8:
            text = ", ".join(f"{factor.titles[code]} {n:,}" for code, n in sizes.items())
        else:
            text = f"{len(sizes)} labels, {low:,} to {high:,} portraits each"
        parts.append(f"{noun(factor)} ({text}{f'; {without:,} without a label' if without else ''})")
    yield from expect(m["by"] or "", f", labelled by {joined(parts)}" if parts else "", "labels")


def asked(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Editors, and how the edits ended."""
    editors = list(dict.fromkeys(facts.edits["editor"]))
    ends = facts.edits["outcome"].value_counts()
    if m["editors"] is not None:
        yield from expect(sorted(m["names"].split(", ")), sorted(editors), "editors")
        yield from expect(m["editors"], fuller(len(editors), "editor"), "number of editors")
    yield from expect(m["n"], fuller(len(facts.edits), "edit"), "edits")
    for name, outcome in (("back", "edited"), ("refused", "refused"), ("failed", "failed")):
        yield from expect(m[name], f"{int(ends.get(outcome, 0)):,}", outcome)


def judges(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How often each judge answered."""
    raters = [r for r in facts.raters(Kind.VLM) if facts.calls(r)[1]]
    each = []
    for rater in raters:
        scored, calls = facts.calls(rater)
        each.append(f"{facts.name(rater)} answered {percent(scored / calls)} of {calls:,} calls")
    yield from expect(m["each"], joined(each), "answers of judges")
    yield from expect(m["who"], "One judge was" if len(each) == 1 else f"{len(each)} judges were", "judges")


def combined(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Several judges scored; the rules are those of the experiments that are there."""
    if len(facts.answered(Kind.VLM)) < 2:
        yield "fewer than two judges scored anything"
    there = set(facts.edits["experiment"])
    for rule, experiment in re.findall(r"'(\w+)' \((\w+)\)", m["rules"]):
        yield from expect(rule, facts.design.rules.ensemble[experiment], f"rule of {experiment}")
        if experiment not in there:
            yield f"there is no {experiment}"


def unscored(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """What an edit without a score counts as."""
    neutral = facts.design.rules.missing == "neutral-3"
    yield from expect("counts as 3" in m[0], neutral, "neutral score")
    if not facts.answered(Kind.VLM):
        yield "no judge scored anything"


def instruments(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Who measured."""
    there = [facts.name(r) for r in facts.raters(Kind.INSTRUMENT) if was_asked(facts, r)]
    yield from expect(m["names"], joined(there), "instruments")
    yield from expect(bool(m["s"]), len(there) > 1, "plural")


def rated_by_people(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How many people rated how many outputs."""
    people = len(facts.answered(Kind.HUMAN))
    rated, edited = rated_outputs(facts), int((facts.edits["outcome"] == "edited").sum())
    yield from expect(m["who"], "1 person" if people == 1 else f"{people:,} people", "people")
    yield from expect(m["n"], f"{rated:,}", "rated outputs")
    yield from expect(m["of"], fuller(edited, "output"), "outputs")


def mitigated(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How many edits had a feature prompt, how they were chosen, and whether there is a placebo."""
    yield from expect(m["n"], fuller(len(facts.rows(None, "feature", "mitigation")), "edit"), "edits")
    yield from expect(m["how"], SAMPLERS[facts.design.rules.mitigation_cases], "how cases were chosen")
    placebo = len(facts.rows(None, "placebo", "mitigation"))
    yield from expect(m["placebo"], f"{placebo:,}" if placebo else None, "placebo")


def paired(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How many edits of two portraits there are."""
    yield from expect(m["n"], fuller(len(facts.rows(None, "baseline", "stereotype")), "edit"), "edits of pairs")
    swapped = len(facts.rows(None, "swapped", "stereotype"))
    yield from expect(m["swapped"], f"{swapped:,}" if swapped else None, "swapped")


def thresholds(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Every rate with its threshold, of questions that were answered, and none else."""
    yield from expect("missing ones" in m["of"], facts.design.rules.missing == "neutral-3", "neutral score")
    told = dict(
        re.fullmatch(r"(.+) ([≥≤]\d)", cut).groups()
        for cut in m["cuts"].split(
            ", "
            r""
        )
    )  # type: ignore[union-attr]
    rules = facts.design.rules.rates
    true = {
        TITLES[r].lower(): rule.rule for r, rule in rules.items() if any(rule.question in e for e in facts.ensemble)
    }
    if facts.design.rules.missing == "neutral-3":
        true = {TITLES[r].lower(): rule.rule for r, rule in rules.items()}
    yield from expect(told, true, "thresholds")


def measured_rates(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """An instrument read a rate."""
    if not any(facts.calls(r)[0] for r in facts.raters(Kind.INSTRUMENT)):
        yield "nothing was measured"


def drawn(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Intervals are made by drawing what the estimates say, so often, at this level."""
    rules = facts.design.rules
    yield from expect(m["level"], f"{100 * rules.confidence:g}%", "confidence")
    yield from expect(m["draws"], str(rules.draws), "draws")
    made = {e.method.partition(", ")[0] for e in _every(facts) if e.low is not None and e.method.startswith("boot")}
    units = {"bootstrap(source x prompt": "portraits and prompts", "bootstrap(source": "portraits alone where a measure has one prompt", "bootstrap(prompt": "prompts for edits of two portraits"}  # fmt: skip # noqa: E501
    yield from expect(set(m["units"].split("; ")), {units[x] for x in made}, "what is drawn")
    if "bootstrap(source x prompt" in made and facts.edits["prompt_id"].nunique() < 2:
        yield "one prompt cannot be drawn"


def _every(facts: Facts) -> list[Estimate]:
    return [*facts.results.estimates, *(e for m in facts.results.measured for e in m.estimates)]


def faces_drawn(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Some interval draws faces."""
    if not any(e.low is not None and e.method.startswith("bootstrap(source") for e in _every(facts)):
        yield "no interval draws faces"


def wilson(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Some rate is 0 or 1 and has an interval."""
    if not any(e.value in (0, 1) and e.low is not None for e in _every(facts)):
        yield "there is no such rate"


def no_interval(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """No estimate has an interval."""
    if any(e.low is not None for e in _every(facts)):
        yield "an estimate has an interval"


def gap_tests(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Gaps were tested, so some factor has two labels."""
    yield from expect(m["n"], str(facts.design.rules.permutations), "permutations")
    if not any(len([c for c in facts.portraits(f) if c]) > 1 for f in facts.results.factors):
        yield "no factor has two labels"
    tests = [*facts.results.tests, *(t for x in facts.results.measured for t in x.tests)]
    yield from expect(m["within"] is not None, any(" within " in t.method for t in tests), "strata")


def families(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How many tests were made of each kind; no gap is tested that has no factor, no mitigation without a placebo."""
    kinds = {"shifts": "shift", "gaps": "gap", "the mitigation": "mitigation", "stereotypes": "stereotype"}
    for n, words in re.findall(r"([\d,]+) of (shifts|gaps|the mitigation|stereotypes)", m["each"]):
        yield from expect(int(n.replace(",", "")), facts.results.counts[f"tests.{kinds[words]}"], words)
    if "mitigation" in m["each"] and not facts.rows(None, "feature", "mitigation"):
        yield "there is no mitigation"
    if "stereotypes" in m["each"] and not facts.rows(None, "baseline", "stereotype"):
        yield "there are no pairs"


def adjustments(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Kinds are named that there are tests of, and share the chance where there are several."""
    counts = {
        kind: facts.results.counts.get(f"tests.{kind}", 0) for kind in ("shift", "gap", "mitigation", "stereotype")
    }
    yield from expect("for gaps" in m["how"], bool(counts["gap"]), "gaps")
    yield from expect("feature prompt" in m["how"], bool(counts["mitigation"]), "mitigation")
    yield from expect(m["shared"] is not None, sum(n > 0 for n in counts.values()) > 1, "kinds that share the chance")


def labelled(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Some portrait has a label."""
    if not any(code for f in facts.results.factors for code in facts.portraits(f)):
        yield "no portrait has a label"


def version(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """The release."""
    yield from expect(m["version"], __version__, "release")


def simulated(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """What is simulated is named."""
    there = [e for e in dict.fromkeys(facts.edits["editor"]) if e.startswith("simulated-")]
    yield from expect(m["ids"], ", ".join(there), "simulated")


METHODS: tuple[tuple[re.Pattern[str], Check], ...] = (
    (pattern(r"SIMULATED data, no finding about any real editor or judge: (?P<ids>.+)\."), simulated),
    (pattern(r"The edits start from (?P<n>[\d,]+ portraits?)(?P<by>, labelled by .+)?\."), portraits),
    (pattern(r"Labels are those of the dataset\."), labelled),
    (
        pattern(
            r"(?:(?P<editors>\d+ editors?) \((?P<names>.+?)\) (?:was|were) asked for )?(?P<n>[\d,]+ edits?)(?: asked "
            r"for)?: (?P<back>[\d,]+) came back, (?P<refused>[\d,]+) refused, (?P<failed>[\d,]+) failed\."
        ),
        asked,
    ),
    (pattern(r"(?P<who>One judge was|\d+ judges were) asked about outputs: (?P<each>.+)\."), judges),
    (
        pattern(r"Where several judges scored an edit, one score was made of theirs by the rule (?P<rules>.+)\."),
        combined,
    ),
    (
        pattern(r"(?:On the scales, an edit that no judge scored counts as 3|What no judge scored is left out)\."),
        unscored,
    ),
    (pattern(r"Pixels were measured by the instrument(?P<s>s?) (?P<names>.+), apart from all ratings\."), instruments),
    (pattern(r"(?P<who>1 person|[\d,]+ people) rated (?P<n>[\d,]+) of (?P<of>[\d,]+ outputs?)\."), rated_by_people),
    (
        pattern(
            r"For the mitigation (?P<n>[\d,]+ edits?) had a feature prompt before the request \((?P<how>.+?)\)"
            r"(?:; (?P<placebo>[\d,]+) more repeat the request with another seed, as a placebo)?\."
        ),
        mitigated,
    ),
    (
        pattern(
            r"On stereotypes, (?P<n>[\d,]+ edits?) of two portraits were asked "
            r"for(?:, and (?P<swapped>[\d,]+) more with "
            r"the pronoun swapped)?\."
        ),
        paired,
    ),
    (pattern(r"Rates are shares of (?P<of>valid scores|scores, with 3 for missing ones): (?P<cuts>.+)\."), thresholds),
    (pattern(r"Measured rates are shares of the edits that could be measured\."), measured_rates),
    (
        pattern(
            r"Intervals \((?P<level>[\d.]+%)\) of rates and means draw anew, (?P<draws>\d+) times: (?P<units>.+)\."
        ),
        drawn,
    ),
    (pattern(r"Edits of one face are not taken as independent\."), faces_drawn),
    (
        pattern(
            r"A rate of 0% or 100% has Wilson's interval; how alike its rows are is taken from the groups and rates in "
            r"which something occurred, and without any, portraits or prompts are its units\."
        ),
        wilson,
    ),
    (pattern(r"No estimate has an interval: there is too little to draw from\."), no_interval),
    (
        pattern(
            r"Gaps between groups are the highest minus the lowest rate, tested by permuting labels over portraits"
            r"(?P<within>, within levels of the other factors where the design "
            r"allows it)? \((?P<n>\d+) permutations\)\."
        ),
        gap_tests,
    ),
    (
        pattern(
            r"Findings are called clear where p is below 0\.05 after adjustment for all tests of the report "
            r"\((?P<each>.+)\)\."
        ),
        families,
    ),
    (
        pattern(
            r"Within each kind p is adjusted (?P<how>.*)with Holm"
            r"(?P<shared>; the kinds share the chance of a false alarm)?\."
        ),
        adjustments,
    ),
    (pattern(r"Analysis: EvenEdit (?P<version>.+)\."), version),
)
