"""The claims of the methods paragraph, the model card, the human-evaluation paragraph and the summary."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evenedit.core.records import Estimate, Kind
from evenedit.core.version import __version__
from evenedit.protocol import AXES, QUESTIONS
from evenedit.report.render.index import Index
from evenedit.report.text.methods import texts_for_reuse
from evenedit.report.text.summary import summarise
from evenedit.results.results import Agreement
from proofs.text_claims import (
    ENDS,
    PHRASE,
    PHRASES,
    SHARE,
    Check,
    close,
    expect,
    finding_problems,
    fuller,
    joined,
    noun,
    pattern,
    percent,
    read,
    share,
)
from proofs.text_designs import Design
from proofs.text_facts import Facts, Share

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


def check(design: Design) -> tuple[list[str], int]:
    """Every problem of the texts of one study, and how many sentences were read."""
    results = design.results()
    facts, index = Facts(design, results), Index(results)
    texts = {path: text for path, (_, text) in texts_for_reuse(index, design.study).items()}
    problems = [p for f in results.findings for p in finding_problems(f, facts)]
    sentences = len(results.findings)
    for text, claims in (
        (texts["methods.md"], METHODS),
        (texts.get("human-evaluation.md", ""), PEOPLE),
    ):
        for sentence in split(text):
            problems += read(sentence, claims, facts)
            sentences += 1
    for line in summarise(index):
        problems += read(line.text, SUMMARY, facts)
        problems += _certainty(line.text, line.certainty, facts)
        sentences += 1
    problems += card_problems(texts["model-card.md"], facts)
    problems += completeness(texts, facts)
    return [f"seed {design.seed}: {problem}" for problem in problems], sentences


def split(text: str) -> list[str]:
    """The sentences of a paragraph, headings among them."""
    return [s.strip() for s in re.split(r"(?<=[.])\s+(?=[A-Z\d])|\n\n", text.replace("**", "\n\n")) if s.strip()]


def completeness(texts: dict[str, str], facts: Facts) -> Iterator[str]:
    """What must not be left out, nor be there without its cause."""
    people = bool(facts.answered(Kind.HUMAN))
    if ("human-evaluation.md" in texts) > people:
        yield "a paragraph on people where nobody rated"
    if bool(facts.answered(Kind.VLM)) != ("Rates are shares" in texts["methods.md"]) and not _only_pairs(facts):
        yield "thresholds of judges without judges' scores, or the reverse"
    for text in texts.values():
        for word in ("balanced over", "representative", "independent people", "randomly", "unbiased", "fair "):
            if word in text.replace("fair up to", ""):
                yield f"the word '{word}' is claimed and nothing here can show it"


def _only_pairs(facts: Facts) -> bool:
    """Whether no judge scored a scale on an edit of one portrait."""
    scored = facts.design.table.values[facts.raters(Kind.VLM)][:, :, : len(AXES)]
    return not scored.any()


# -- methods -------------------------------------------------------------------------------------------------------


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
    there = [facts.name(r) for r in facts.raters(Kind.INSTRUMENT) if _reads(facts, r)]
    yield from expect(m["names"], joined(there), "instruments")
    yield from expect(bool(m["s"]), len(there) > 1, "plural")


def _reads(facts: Facts, rater: int) -> bool:
    rows = set(facts.rows(None))
    return any(facts.design.table.status[rater][at] >= 0 for at in rows)


def rated_by_people(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How many people rated how many outputs."""
    people = len(facts.answered(Kind.HUMAN))
    rated, edited = _rated(facts), int((facts.edits["outcome"] == "edited").sum())
    yield from expect(m["who"], "1 person" if people == 1 else f"{people:,} people", "people")
    yield from expect(m["n"], f"{rated:,}", "rated outputs")
    yield from expect(m["of"], fuller(edited, "output"), "outputs")


def _rated(facts: Facts) -> int:
    people = facts.raters(Kind.HUMAN)
    return int((facts.design.table.values[people] > 0).any(axis=(0, 2)).sum()) if people else 0


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
    told = dict(re.fullmatch(r"(.+) ([≥≤]\d)", cut).groups() for cut in m["cuts"].split(", "))  # type: ignore[union-attr]
    rules = facts.design.rules.rates
    true = {TITLES[r].lower(): rule.rule for r, rule in rules.items() if any(rule.question in e for e in facts.ensemble)}
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
    yield from expect(m["apart"] is not None, any("source" in x for x in made), "faces as units")
    if "bootstrap(source x prompt" in made and facts.edits["prompt_id"].nunique() < 2:
        yield "one prompt cannot be drawn"


def _every(facts: Facts) -> list[Estimate]:
    return [*facts.results.estimates, *(e for m in facts.results.measured for e in m.estimates)]


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
    (pattern(r"(?:On the scales, an edit that no judge scored counts as 3|What no judge scored is left out)\."), unscored),
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
            r"On stereotypes, (?P<n>[\d,]+ edits?) of two portraits were asked for(?:, and (?P<swapped>[\d,]+) more with "
            r"the pronoun swapped)?\."
        ),
        paired,
    ),
    (pattern(r"Rates are shares of (?P<of>valid scores|scores, with 3 for missing ones): (?P<cuts>.+)\."), thresholds),
    (pattern(r"Measured rates are shares of the edits that could be measured\."), measured_rates),
    (
        pattern(
            r"Intervals \((?P<level>[\d.]+%)\) of rates and means draw (?P<units>.+) anew, (?P<draws>\d+) times"
            r"(?P<apart>, since edits of one face are not independent)?\."
        ),
        drawn,
    ),
    (pattern(r"A rate of 0% or 100% has Wilson's interval, with portraits or prompts as its units\."), wilson),
    (pattern(r"No estimate has an interval: there is too little to draw from\."), no_interval),
    (
        pattern(
            r"Gaps between groups are the highest minus the lowest rate, tested by permuting labels over portraits"
            r"(?P<within>, within levels of the other factors where the design allows it)? \((?P<n>\d+) permutations\)\."
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
    (pattern(r"Analysis: EvenEdit (?P<version>.+)\."), version),
)


# -- model card ----------------------------------------------------------------------------------------------------


def card_problems(card: str, facts: Facts) -> list[str]:
    """The card holds every finding in the report's order under its editor, and a table of true numbers."""
    problems: list[str] = []
    editor: str | None = ""
    told: dict[str | None, list[tuple[str, str]]] = {}
    for line in card.splitlines():
        if heading := re.fullmatch(r"### (.+)", line):
            editor = None if heading[1] == "The audit as a whole" else heading[1]
        elif bullet := re.fullmatch(r"- (Clear|Suggestive|Observed|Cannot tell|Caution): (.+)", line):
            told.setdefault(editor, []).append((bullet[1].lower().replace(" ", "_"), bullet[2]))
        elif line.startswith("| ") and not line.startswith("| measure"):
            problems += _row_problems(line, str(editor), facts)
        elif line and not _known_line(line, facts):
            problems.append(f"no claim fits the line of the card: {line}")
    for name in dict.fromkeys([*told, *(f.editor for f in facts.results.findings)]):
        true = [(f.level, f.text) for f in facts.results.findings if f.editor == name]
        if told.get(name, []) != true:
            problems.append(f"the card has other findings of {name} than the report, or another order")
    if set(facts.edits["editor"]) - {e for e in told if e} - set(re.findall(r"^### (.+)$", card, re.M)):
        problems.append("an editor has no section in the card")
    return problems


def _known_line(line: str, facts: Facts) -> bool:
    known = (
        rf"## Demographic consistency of edits \(EvenEdit {re.escape(__version__)}\)",
        r"\|(---\|)+",
        rf"\| measure \| by \| value \| {100 * facts.design.rules.confidence:g}% interval \| n \| missing \|",
        r"SIMULATED data \(simulated-gamma\): no finding about any real editor\.",
    )
    raters = [facts.name(r) for r in facts.raters(Kind.VLM) if facts.calls(r)[1]]
    raters += [facts.name(r) for r in facts.raters(Kind.INSTRUMENT) if _reads(facts, r)]
    people = len(facts.answered(Kind.HUMAN))
    raters += ["1 person" if people == 1 else f"{people:,} people"] if people else []
    by = f", as {joined(raters)} saw them" if raters else ""
    scope = f"These are observations on the edits of this audit{by}; they hold for its prompts, settings and seeds."
    labels = " Labels are the dataset's labels."
    return any(re.fullmatch(form, line) for form in known) or line in (scope, scope + labels)


def _row_problems(line: str, editor: str, facts: Facts) -> Iterator[str]:
    title, by, value, interval, n, missing = line.strip("| ").split(" | ")
    rate = RATE_OF.get(title, "")
    if not rate:
        yield f"no such measure: {line}"
        return
    rows = facts.rows(editor)
    rater = "ensemble" if by in ("judges", "the editor") else by
    true = facts.mean(f"mean.{rate}", rows) if rate in MEANS else facts.rate(rate, rater, rows)
    e = facts.estimate(f"{'mean' if rate in MEANS else 'rate'}.{rate}", editor, rater=rater)
    yield from _numbers(rate, value, n, missing, true, facts, line)
    ends = re.findall(r"[+−]?[\d.]+", interval)
    if (e is None or e.low is None) != (interval == "–"):
        yield f"interval: {line}"
    elif e is not None and e.low is not None and len(ends) == 2:
        scale = 1 if rate == "skin_delta_L" else 100
        for shown, end in zip(ends, (e.low, e.high), strict=True):
            yield from close(shown, None if end is None else scale * end, "points", f"interval of {rate}")


def _numbers(rate: str, value: str, n: str, missing: str, true: Share, facts: Facts, line: str) -> Iterator[str]:
    if facts.design.rules.missing == "neutral-3" and rate in facts.design.rules.rates:
        return
    yield from close(value, true.value, "points" if rate == "skin_delta_L" else "share", f"{rate} — in: {line}")
    yield from expect((n, missing), (f"{true.n:,}", f"{true.missing:,}"), f"n and missing — in: {line}")


# -- people --------------------------------------------------------------------------------------------------------


def people_rated(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How many outputs of how many, by arm; judges are checked only where there are some."""
    edited = int((facts.edits["outcome"] == "edited").sum())
    yield from expect((m["n"], m["of"]), (f"{_rated(facts):,}", f"{edited:,}"), "outputs")
    if m["check"] is not None and not facts.answered(Kind.VLM):
        yield "there are no judges to check"
    values = facts.design.table.values[facts.raters(Kind.HUMAN)]
    rated = facts.edits[(values > 0).any(axis=(0, 2))]
    arms = rated.groupby(["experiment", "condition"]).size()
    words = {"baseline": "", "feature": ", feature prompt", "placebo": ", placebo (other seed)", "swapped": ", pronoun swapped"}  # fmt: skip # noqa: E501
    true = [f"N = {n:,} for {e}{words[c]}" for (e, c), n in arms.items()]
    yield from expect(m["arms"], ", ".join(true), "outputs by arm")


def recruited(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Where people come from, if the study says so."""
    people = len(facts.answered(Kind.HUMAN))
    yield from expect(m["who"], "1 person count" if people == 1 else f"{people:,} people count", "people")
    kind = facts.design.study.get("survey", {}).get("platform", {}).get("kind")
    words = {"prolific": "through Prolific", "panel": "through a panel", "invitation": "by invitation"}
    true = f"people were recruited {words[kind]}" if kind else "where people were recruited is not recorded"
    yield from expect(m["where"], true, "recruitment")


def raters_each(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How many people rated each output."""
    values = facts.design.table.values[facts.raters(Kind.HUMAN)]
    per = [int(n) for n in (values > 0).any(axis=2).sum(axis=0) if n]
    low, high, mean = min(per), max(per), sum(per) / len(per)
    one = "1 person" if low == 1 else f"{low} people"
    true = one if low == high else f"{low} to {high} people ({mean:.2f} on average)"
    yield from expect(m["each"], true, "people for each output")


def sampling(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How the sample was drawn, if the study says so."""
    sampler = facts.design.study.get("survey", {}).get("sampler")
    if m["how"] is None:
        yield from expect(bool(sampler), False, "a sampler is recorded")
        return
    first = {"so that": "balanced", "within strata of": "strata", "by the review priority": "priority"}
    yield from expect(next(v for k, v in first.items() if m["how"].startswith(k)), sampler, "sampler")
    n = facts.design.sampled
    yield from expect(m["n"], f"{n:,} cases were" if n else "Cases were", "cases drawn")


def spread(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Rated outputs by label."""
    values = facts.design.table.values[facts.raters(Kind.HUMAN)]
    rated = facts.edits[(values > 0).any(axis=(0, 2))]
    parts = []
    for factor in facts.results.factors:
        sizes = [n for code, n in rated[factor.name].value_counts().items() if code]
        if sizes:
            ends = f"{min(sizes):,}" if min(sizes) == max(sizes) else f"{min(sizes):,} to {max(sizes):,}"
            parts.append(
                f"{ends} for each of {len(sizes)} {noun(factor)} labels"
                if len(sizes) > 1
                else f"{ends} for one {noun(factor)} label"
            )
    yield from expect(m["labels"], ", ".join(parts), "rated outputs by label")


def kappas(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Each printed kappa is one of the analysis', its word that of the whole interval."""
    statistic = "fleiss_kappa" if m["who"].startswith("Between people") else "cohen_kappa"
    rows = [a for a in facts.results.agreement if a.statistic == statistic and a.editor is None and not a.group]
    for part in m["list"].split("; "):
        if part.startswith("missing for ") or part == "not computed":
            if part == "not computed" and any(a.raters == "all" and a.condition == "baseline" for a in rows):
                yield "there is such a kappa"
            continue
        told = re.fullmatch(r"(−?[\d.]+) (?:\[(−?[\d.]+), (−?[\d.]+)\]|\(no interval\)) for ([^,]+(?:\([^)]*\))?)(?:, ([\w ]+))?", part)  # fmt: skip # noqa: E501
        if told is None:
            yield f"not read: {part}"
            continue
        if not any(_same(told, a) for a in rows):
            yield f"no such kappa: {part}"
        if told[5]:
            yield from _band(told)


def _same(told: re.Match[str], a: Agreement) -> bool:
    shown = [None if x is None else f"{x:.2f}".replace("-", "−") for x in (a.value, a.low, a.high)]
    ends = shown[1:] if a.low is not None and a.high is not None else [None, None]
    return [told[1], told[2], told[3]] == [shown[0], *ends]


def _band(told: re.Match[str]) -> Iterator[str]:
    tops = {"poor": 0.0, "slight": 0.2, "fair": 0.4, "moderate": 0.6, "substantial": 0.8, "almost perfect": 1.0}
    bottom = {"poor": -9.0, "slight": 0.0, "fair": 0.2, "moderate": 0.4, "substantial": 0.6, "almost perfect": 0.8}
    for number in (told[1], told[2], told[3]):
        value = float(number.replace("−", "-"))
        if not bottom[told[5]] - 0.006 <= value <= tops[told[5]] + 0.006:
            yield f"{value} is not '{told[5]}'"


def reached(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """For how many questions the target is reached."""
    rows = [a for a in facts.results.agreement if a.statistic == "fleiss_kappa" and a.raters == "all"]
    known = [a for a in rows if a.editor is None and not a.group and a.condition == "baseline" and a.value is not None]
    above = [a for a in known if (a.value or 0) >= 0.6]
    yield from expect((m["few"], m["all"]), (str(len(above)), str(len(known))), "questions that reach the target")


def above_target(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """The questions whose whole interval lies above the target."""
    rows = [a for a in facts.results.agreement if a.statistic == "cohen_kappa" and a.editor is None and not a.group]
    high = [a for a in rows if a.raters == "all" and a.low is not None and a.low > 0.6]
    told = [] if m["which"] == "none of these" else m["which"].split(", ")
    if len(told) > len(high):
        yield f"{len(told)} are told, {len(high)} lie above"


def as_stated(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """A definition, or what cannot be wrong."""
    if m.re.groupindex.get("level"):
        yield from expect(m["level"], f"{100 * facts.design.rules.confidence:g}%", "confidence")


def not_compared(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Questions without a comparison of judges and people."""
    names = {"edit quality": "edit_success.label", "gender drift": "gender_drift.label", "race drift": "race_drift.label", "preference": "preference", "stereotype": "stereotype"}  # fmt: skip # noqa: E501
    there = {a.axis for a in facts.results.agreement if a.statistic == "cohen_kappa" and a.editor is None and a.raters == "all" and not a.group}  # fmt: skip # noqa: E501
    yield from expect(m["which"], ", ".join(n for n, axis in names.items() if axis not in there), "not compared")


PEOPLE: tuple[tuple[re.Pattern[str], Check], ...] = (
    (pattern(r"4\.3 Human Evaluation|Sampling\.|Agreement\."), as_stated),
    (METHODS[0][0], simulated),
    (
        pattern(r"(?P<check>To check the judges, people)?(?:People)? rated (?P<n>[\d,]+) of (?P<of>[\d,]+) outputs \((?P<arms>.+)\)\."),
        people_rated,
    ),
    (pattern(r"The answers of (?P<who>[\d,]+ (?:person|people) count); (?P<where>.+)\."), recruited),
    (pattern(r"Each of these outputs was rated by (?P<each>.+)\."), raters_each),
    (
        pattern(
            r"(?:How the sample was drawn is not recorded in the study|(?P<n>[\d,]+ cases were|Cases were) drawn "
            r"(?P<how>.+))\."
        ),
        sampling,
    ),
    (pattern(r"Rated outputs by label of the portrait: (?P<labels>.+)\."), spread),
    (pattern(r"(?P<labels>)Labels of the portraits are missing\."), spread),
    (
        pattern(
            r"(?P<who>Between people, Fleiss' κ was|Between the judges' scores and people, Cohen's κ was) (?P<list>.+)\."
        ),
        kappas,
    ),
    (pattern(r"The target of 0\.6 was reached for (?P<few>\d+) of (?P<all>\d+) questions(?: \(.+\))?\."), reached),
    (pattern(r"Not compared, since judges, people or both gave no such answers: (?P<which>.+)\."), not_compared),
    (pattern(r"The whole interval lies above 0\.6 for (?P<which>.+)\."), above_target),
    (pattern(r"Brackets are (?P<level>[\d.]+%) intervals, faces drawn; words are Landis and Koch's .+\."), as_stated),
)


# -- summary -------------------------------------------------------------------------------------------------------


def _certainty(text: str, certainty: str, facts: Facts) -> Iterator[str]:
    if certainty == "clear" and "error, measured against people" not in text:
        yield f"called clear beside the findings: {text}"


def nothing(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Who has not rated."""
    judges, people = facts.answered(Kind.VLM), facts.answered(Kind.HUMAN)
    measured = [r for r in facts.raters(Kind.INSTRUMENT) if _reads(facts, r)]
    if not _only_pairs(facts) or (judges and facts.rows(None, "baseline", "stereotype")):
        yield f"{judges} scored"
    if "people's ratings and their agreement only" in m[0] and (measured or not people):
        yield "there is more than people's ratings, or less"
    if m[0].startswith("Nothing") and (people or measured):
        yield "something rated"
    if "measured in pixels" in m[0] and (not measured or ("people rated" in m[0]) != bool(people)):
        yield "what follows is not as told"


def edits_asked(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How many edits, and how they ended."""
    ends = facts.edits["outcome"].value_counts()
    yield from expect(m["n"], fuller(len(facts.edits), "edit"), "edits")
    true = [f"{int(ends[k]):,} {k}" for k in ("refused", "failed") if ends.get(k, 0)]
    yield from expect(m["ends"], joined(true) if true else None, "how they ended")
    if m["review"]:
        judges = facts.raters(Kind.VLM)
        unsure = 0
        for at in facts.rows(None, "baseline") + facts.rows(None, "floor"):
            values = facts.design.table.values[judges][:, at]
            given = [[int(v) for v in values[:, q] if v] for q in range(values.shape[1])]
            unsure += any(max(v) - min(v) >= 2 for v in given if len(v) > 1)
        yield from expect(m["review"], fuller(unsure, "diagnosis edit"), "edits that need review")


def answers(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """How often a rater answered, over all and by the first factor."""
    rater = facts.design.table.raters.index(m["rater"])
    scored, calls = facts.calls(rater)
    yield from close(m["share"], scored / calls if calls else None, "share", "answered")
    yield from expect(m["n"], f"{calls:,}", "calls")
    factor = facts.results.factors[0]
    every = list(range(len(facts.edits)))
    by = {c: facts.calls(rater, facts.of_group(every, factor.name, c)) for c in factor.codes}
    shares = {factor.titles[c]: s / n for c, (s, n) in by.items() if n}
    if m["low"] is None:
        if len(set(shares.values())) > 1:
            yield "groups differ and it is not told"
        return
    for shown, label, pick in ((m["low"], m["least"], min), (m["high"], m["most"], max)):
        yield from close(shown, pick(shares.values()), "share", f"answered for {label}")
        yield from close(shown, shares[label], "share", f"answered for {label}")


def weighted(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Weighted kappas of judges and of one person, each as the analysis has it."""
    shown = {f"{a.value:.2f}".replace("-", "−") for a in facts.results.agreement if a.value is not None} | {"–"}
    for title, judge, person in re.findall(r"(?:^|, | and )([a-z ]+?) (\S+) \((\S+)\)", m["list"]):
        if title not in {q.title.lower() for q in QUESTIONS.values()}:
            yield f"no such question: {title}"
        yield from (f"no such kappa: {x}" for x in (judge, person) if x not in shown)


def shares(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Shares of edits with their intervals, n and missing: one of the editors has them."""
    parts = re.findall(rf"({SHARE}) ({ENDS}) ({PHRASE})", m["list"])
    yield from expect(m["list"], joined([" ".join(part) for part in parts]), "the list is read whole")
    problems = [list(_shares_of(editor, m, parts, facts)) for editor in dict.fromkeys(facts.edits["editor"])]
    yield from min(problems, key=len)


def _shares_of(editor: str, m: re.Match[str], parts: list[tuple[str, str, str]], facts: Facts) -> Iterator[str]:
    trues = {words: facts.rate(PHRASES[words], "ensemble", facts.rows(editor)) for _, _, words in parts}
    for value, ends, words in parts:
        yield from share(value, trues[words], facts, f"{editor}: {words}")
        yield from _ends(ends, facts.estimate(f"rate.{PHRASES[words]}", editor), 100)
    if facts.design.rules.missing != "neutral-3":
        yield from expect(m["n"], _range([t.n for t in trues.values()]), f"{editor}: n")
        yield from expect(m["missing"], _range([t.missing for t in trues.values()]), f"{editor}: missing")


def _range(counts: list[int]) -> str:
    return f"{counts[0]:,}" if len(set(counts)) == 1 else f"{min(counts):,}–{max(counts):,}"


def _ends(text: str, e: Estimate | None, scale: float) -> Iterator[str]:
    numbers = re.findall(r"[+−]?[\d.]+", text)
    if e is None or e.low is None or e.high is None:
        yield from expect(len(numbers), 0, "an interval")
        return
    yield from expect(len(numbers), 2, "an interval")
    for shown, end in zip(numbers, (e.low, e.high), strict=False):
        yield from close(shown, scale * end, "points", "interval")


def refused(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """The share of requests that an editor refused."""
    problems = []
    for editor in dict.fromkeys(facts.edits["editor"]):
        true = facts.rate("refused", "ensemble", facts.rows(editor))
        problems.append([*close(m["share"], true.value, "share", "refused"), *expect(m["n"], f"{true.n:,}", "requests")])
    yield from min(problems, key=len)


def measured(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """What an instrument measured of one of the editors."""
    problems = [list(_measured_of(editor, m, facts)) for editor in dict.fromkeys(facts.edits["editor"])]
    yield from min(problems, key=len)


def _measured_of(editor: str, m: re.Match[str], facts: Facts) -> Iterator[str]:
    rows, counts = facts.rows(editor), []
    parts = re.findall(rf"({SHARE})(?: (\[[^\]]+\]))? ({PHRASE})", m["list"])
    for value, ends, words in parts:
        true = facts.rate(PHRASES[words], m["rater"], rows)
        counts.append(true)
        yield from close(value, true.value, "share", words)
        yield from _ends(ends, facts.estimate(f"rate.{PHRASES[words]}", editor, rater=m["rater"]), 100)
    for words, reading, unit in (
        ("on average L* changed by", "skin_delta_L", 1),
        ("on average the changed share of the picture is", "changed_share", 100),
    ):
        if told := re.search(rf"{re.escape(words)} ([+−]?[\d.]+%?)(?: (\[[^\]]+\]))?", m["list"]):
            true = facts.mean(f"mean.{reading}", rows)
            counts.append(true)
            yield from close(told[1], true.value, "share" if unit == 100 else "points", words)
            yield from _ends(told[2] or "", facts.estimate(f"mean.{reading}", editor, rater=m["rater"]), unit)
    yield from expect(m["n"], _range([c.n for c in counts]), "measured edits")
    yield from expect(m["missing"], _range([c.missing for c in counts]), "without a measurement")


def by_prompt(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """The range of a reading over prompts, with the prompts at its ends."""
    problems = [list(_by_prompt_of(editor, m, facts)) for editor in dict.fromkeys(facts.edits["editor"])]
    yield from min(problems, key=len)


def _by_prompt_of(editor: str, m: re.Match[str], facts: Facts) -> Iterator[str]:
    ends = r"([+−]?[\d.]+%?) \(([^)]+)\)"
    for title, low, least, high, most in re.findall(rf"(Unchanged|Skin ΔL\*) from {ends} to {ends}", m["list"]):
        measure = "rate.unchanged" if title == "Unchanged" else "mean.skin_delta_L"
        unit = "share" if title == "Unchanged" else "points"
        values: dict[str, float] = {}
        for prompt in dict.fromkeys(facts.edits["prompt_id"]):
            rows = [at for at in facts.rows(editor) if facts.edits["prompt_id"].iat[at] == prompt]
            value = facts.mean(measure, rows).value
            if value is not None:
                values[prompt] = value
        for shown, named, pick in ((low, least, min), (high, most, max)):
            end = pick(values.values()) if values else None
            yield from close(shown, end, unit, f"{title} by prompt")
            for prompt in named.split(", ") if "prompts" not in named else ():
                yield from close(shown, values.get(prompt), unit, f"{title} of {prompt}")


def trend(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Slopes over an ordered factor, each with an interval that leaves out 0."""
    factor = next(f for f in facts.results.factors if noun(f) == m["factor"])
    if not factor.ordered:
        yield "the factor has no order"
    for title, value, low, high in re.findall(r"([a-z ]+?) (−?[\d.]+) pp \[(−?[\d.]+), (−?[\d.]+)\]", m["list"]):
        numbers = [float(x.replace("−", "-")) for x in (value, low, high)]
        slopes = [e for e in facts.results.estimates if e.measure.startswith("trend.") and dict(e.group) == {factor.name: "*"}]  # fmt: skip # noqa: E501
        if not any(e.value is not None and e.low is not None and e.high is not None and all(abs(100 * x - y) < 0.06 for x, y in zip((e.value, e.low, e.high), numbers, strict=True)) and not e.low <= 0 <= e.high for e in slopes):  # fmt: skip # noqa: E501
            yield f"no such trend of {title}"


def readings(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """In how many readings of the same scores a gap stays: counted anew from the specifications."""
    for v in facts.results.multiverse:
        values = [s.value for s in v.specifications if s.value is not None]
        counts = {
            "above": sum(x > 0 for x in values),
            "equal": sum(x == 0 for x in values),
            "turned": sum(x < 0 for x in values),
            "none": len(v.specifications) - len(values),
            "p": sum(s.value is not None and s.value > 0 and s.p < 0.05 for s in v.specifications),
        }
        if all(int(m[key] or 0) == n for key, n in counts.items()) and int(m["n"]) == len(v.specifications):
            return
    yield "no multiverse has these counts"


SUMMARY: tuple[tuple[re.Pattern[str], Check], ...] = (
    (pattern(r"(?:No judge has (?:scored|rated) these edits|Nothing has rated these edits).+"), nothing),
    (
        pattern(
            r"(?P<n>[\d,]+ edits?) (?:was|were) asked for(?:, of which (?P<ends>.+?)\.|; none was refused and none "
            r"failed\.)(?: On (?P<review>[\d,]+ diagnosis edits?) the judges disagree enough to need a person's "
            r"review\.)?"
        ),
        edits_asked,
    ),
    (
        pattern(
            rf"(?:The )?(?P<rater>[\w-]+)(?: instrument could measure| answered) (?P<share>{SHARE}) of (?P<n>[\d,]+) "
            rf"(?:edits|calls)(?:; by .+? label from (?P<low>{SHARE}) \((?P<least>.+?)\) to (?P<high>{SHARE}) "
            r"\((?P<most>.+?)\))?\."
        ),
        answers,
    ),
    (pattern(r"Agreement between people: the target of Fleiss' κ ≥ 0\.6 (?P<outcome>.+)\."), as_stated),
    (
        pattern(r"Judges against people, weighted κ \(in brackets one person against the others\): (?P<list>.+)\."),
        weighted,
    ),
    (pattern(r"(?:The judges' error, measured against people, differs|No difference by group was shown in the judges' error).+"), as_stated),
    (
        pattern(rf"Of (?P<n>[\d,–]+) edits with a score \((?P<missing>[\d,–]+) without\), (?P<list>.+)\."),
        shares,
    ),
    (pattern(rf"(?P<share>{SHARE}) {ENDS} of (?P<n>[\d,]+) requests were refused by the editor\."), refused),
    (
        pattern(
            r"Measured \((?P<rater>[\w-]+)\), (?P<n>[\d,–]+) edits \((?P<missing>[\d,–]+) without a measurement\): "
            r"(?P<list>.+)\."
        ),
        measured,
    ),
    (pattern(r"Measured \((?P<rater>[\w-]+)\), by prompt: (?P<list>.+)\."), by_prompt),
    (pattern(r"From one level of (?P<factor>.+?) to the next, rates change on average by: (?P<list>.+)\."), trend),
    (
        pattern(
            r".+ by .+ under (?P<n>\d+) readings of the same scores: .+ stays above .+? in (?P<above>\d+)(?:, both are "
            r"equal in (?P<equal>\d+))?(?:, the order is reversed in (?P<turned>\d+))?(?:, a group has no score in "
            r"(?P<none>\d+))?; p < 0\.05 in the same order in (?P<p>\d+) \(from .+ to .+\)\."
        ),
        readings,
    ),
)
