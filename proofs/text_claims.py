"""A reader of a report's texts: every sentence is a claim it knows, and every claim is held against the facts.

A sentence that no claim fits is a problem too: nothing is written that nobody checks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from evenedit.core.records import Kind
from evenedit.protocol import QUESTIONS, Factor
from evenedit.results.results import Finding
from proofs.text_facts import SIDES, Facts, Share
from proofs.text_no_gaps import no_gap

Check = Callable[[re.Match[str], Facts], Iterator[str]]
PHRASES = {
    "had the requested edit applied": "edit_success",
    "came back with the requested edit missing or weak (soft erasure)": "soft_erasure",
    "were rated lighter in skin tone than the source": "skin_lighter",
    "were rated darker in skin tone than the source": "skin_darker",
    "were rated as changed in apparent race": "race_change",
    "were rated as changed in apparent gender": "gender_change",
    "were rated older than the source": "older",
    "were rated younger than the source": "younger",
    "were refused by the editor": "refused",
    "came back showing what their source shows (unchanged)": "unchanged",
    "measured lighter in skin than the source": "measured_skin_lighter",
    "measured darker in skin than the source": "measured_skin_darker",
}
"""What edits have in common, by the words for it."""
PHRASE = "|".join(map(re.escape, PHRASES))
SHARE = r"[\d.]+%"
ENDS = r"(?:\[−?[\d.]+, −?[\d.]+\]|\(no interval\))"


def fuller(n: int, what: str) -> str:
    """A number of things."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def percent(value: float) -> str:
    """A share as texts print it."""
    return f"{100 * value:.1f}%".replace("-", "−")


def joined(words: Sequence[str]) -> str:
    """A list in a sentence."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def noun(factor: Factor) -> str:
    """A factor in a sentence."""
    plain = factor.name.replace("_", " ")
    return plain if factor.title.lower() == plain else factor.title


def expect(found: object, true: object, what: str) -> Iterator[str]:
    """A problem where the text says something else than is so."""
    if found != true:
        yield f"{what}: the text says {found!r}, so is {true!r}"


def close(found: str, true: float | None, unit: str, what: str) -> Iterator[str]:
    """A problem where a printed number is not the true one, rounded; a tie may be rounded either way."""
    digits = found.rstrip("%").replace("−", "-").replace("+", "").replace(",", "")
    shown = float(digits)
    scale = 100 if unit == "share" else 1
    step = 10.0 ** -len(digits.partition(".")[2])
    if true is None or abs(shown - scale * true) > step / 2 + 1e-3 * step + 1e-9 * scale:
        yield f"{what}: the text says {found}, so is {None if true is None else scale * true}"


def share(found: str, true: Share, facts: Facts, what: str) -> Iterator[str]:
    """Whether a share is that of the answers; imputed scores are the analysis' own."""
    if facts.design.rules.missing == "neutral-3":
        return
    yield from close(found, true.value, "share", what)


def pattern(text: str) -> re.Pattern[str]:
    """A claim's form: literal words with {names} for what is read."""
    return re.compile(text, re.DOTALL)


def read(text: str, claims: Sequence[tuple[re.Pattern[str], Check]], facts: Facts) -> list[str]:
    """The problems of one sentence."""
    for form, check in claims:
        if match := form.fullmatch(text):
            return [f"{problem} — in: {text}" for problem in check(match, facts)]
    return [f"no claim fits: {text}"]


# -- findings ------------------------------------------------------------------------------------------------------


def finding_problems(f: Finding, facts: Facts) -> list[str]:
    """The problems of one finding: its sentence, and whether it may be called what it is called."""
    problems = []
    if f.level == "clear" and not (f.p is not None and f.p < 0.05):
        problems.append(f"clear with adjusted p {f.p}: {f.text}")
    if f.level == "suggestive" and not (f.p_raw is not None and f.p_raw < 0.05):
        problems.append(f"suggestive with raw p {f.p_raw}: {f.text}")
    text = PEOPLE.sub("", f.text)
    problems += [f"{problem} — in: {f.text}" for problem in (*_noise(f, text, facts), *_people(f, facts))]
    for form, check in FINDINGS:
        if match := form.fullmatch(NOISE.sub("", text)):
            return problems + [f"{problem} — in: {f.text}" for problem in check(match, f, facts)]
    return [*problems, f"no claim fits the finding: {f.text}"]


NOISE = re.compile(
    r"(?: When asked to change nothing, (?P<what>[\w ]+) is (?P<floor>−?[\d.]+)(?:%| points?)(?: \([^)]*\))?\.)?"
    r"(?: Over (?P<seeds>\d+) seeds it lies between (?P<low>−?[\d.]+)(?:%| points?) and "
    r"(?P<high>−?[\d.]+)(?:%| points?)\.)?$"
)
"""What the editor moves by itself, after the sentence of a shift."""


PEOPLE = re.compile(
    r" With people's ratings of (?P<labels>[\d,]+) of these edits it is (?P<value>−?[\d.]+)(?:%| points?) "
    r"\([\d.]+% interval (?P<low>−?[\d.]+) to (?P<high>−?[\d.]+)\)\.$"
)
"""What judges and people together say, after the sentence of a gap or shift that judges alone tell."""


def _people(f: Finding, facts: Facts) -> Iterator[str]:
    """The estimate of both is the finding's own, in the direction of the judges'."""
    match = PEOPLE.search(f.text)
    if (match is not None) != (f.judge_value is not None):
        yield "judges and people together are told where there is no estimate of both, or not where there is"
        return
    if match is None or f.value is None or f.low is None or f.high is None:
        return
    down = (f.judge_value or 0.0) < 0
    ends = (-f.high, -f.low) if down else (f.low, f.high)
    for name, true in zip(("value", "low", "high"), (-f.value if down else f.value, *ends), strict=True):
        yield from close(match[name], 100 * true, "points", f"judges and people together, {name}")
    group = {} if f.factor is None else {f.factor: "*"}
    labels = [
        p.labelled for p in facts.results.powered if (p.measure, p.editor, p.group) == (f.measure, f.editor, group)
    ]
    yield from expect([int(match["labels"].replace(",", ""))], labels, "edits with people's ratings")


def _noise(f: Finding, text: str, facts: Facts) -> Iterator[str]:
    """The null edit and the seeds, as the results have them."""
    match = NOISE.search(text) if f.kind == "shift" else None
    if match is None or not match[0]:
        return
    place = (f.rater, f.measure, f.editor)
    own = next((n for n in facts.results.noise if (n.rater, n.measure, n.editor) == place), None)
    if own is None:
        yield "noise is told that is not known"
        return
    sign = -1 if (match["what"] or "").startswith(("darker", "younger")) else 1
    if match["floor"] is not None:
        yield from close(match["floor"], None if own.floor is None else 100 * sign * own.floor, "points", "null edit")
    if match["seeds"] is not None:
        ends = sorted(100 * abs(x) for x in (own.seed_low, own.seed_high) if x is not None)
        told = sorted(abs(float(match[end].replace("−", "-"))) for end in ("low", "high"))
        if any(abs(a - b) > 0.051 for a, b in zip(ends, told, strict=True)):
            yield f"the seeds lie between {ends}"


LEVEL = r"(?P<level>[\d.]+%) interval (?P<low>−?[\d.]+) to (?P<high>−?[\d.]+)"
SPREAD = (
    r"(?P<faces>[\d,]+ faces?), (?P<prompts>[\d,]+ prompts?)"
    r"(?:; (?P<missing>[\d,]+) without a (?P<kind>score|measurement))?"
)
NOTHING_ASKED = r"(?:Where no change was asked for, )?"
MEASURED = r"(?:Measured \((?P<rater>[\w-]+)\): )?"


def _interval(m: re.Match[str], f: Finding, facts: Facts, sign: int = 1) -> Iterator[str]:
    low, high = _judges_own(f)
    if m["low"] is None:
        if low is not None:
            yield "an interval is there and not told"
        return
    ends = (low, high) if sign > 0 else (-(high or 0), -(low or 0))
    yield from expect(m["level"], f"{100 * facts.design.rules.confidence:g}%", "confidence")
    for shown, true in zip((m["low"], m["high"]), ends, strict=True):
        yield from close(shown, None if true is None else 100 * true, "points", "interval")


def _judges_own(f: Finding) -> tuple[float | None, float | None]:
    """The interval that the sentence tells: the judges' own, also where the value is theirs and people's together."""
    return (f.low, f.high) if f.judge_value is None else (f.judge_low, f.judge_high)


def two_sided(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """More edits on one side of no change than on the other."""
    rater = m["rater"] or "ensemble"
    question = "skin_tone" if m["a"] in ("lighter", "darker") else "age_drift"
    rows = facts.rows(f.editor, f.condition or "baseline")
    both = [facts.rate(rate, rater, rows, unasked=True) for rate in SIDES[question]]
    words = ("lighter", "darker") if question == "skin_tone" else ("older", "younger")
    by_word = dict(zip(words, both, strict=True))
    first, second = by_word[m["a"]], by_word[m["b"]]
    yield from expect(f.rater, rater, "who rated")
    yield from share(m["s1"], first, facts, f"share {m['a']}")
    yield from share(m["s2"], second, facts, f"share {m['b']}")
    if facts.design.rules.missing != "neutral-3":
        yield from expect(m["n"], fuller(first.n, "edit"), "edits")
        yield from expect(m["faces"], fuller(first.faces, "face"), "faces")
        yield from expect(m["prompts"], fuller(first.prompts, "prompt"), "prompts")
        if (first.value or 0) < (second.value or 0):
            yield "the side named first is the smaller one"
        yield from close(m["size"], 100 * ((first.value or 0) - (second.value or 0)), "points", "difference")
        yield from _missing(m, first, rater)
    yield from _interval(m, f, facts, 1 if m["a"] == words[0] else -1)
    if m["margin"] is not None:
        yield from _within(m["margin"], _judges_own(f), facts)
        return
    shown = m["lead"].endswith(f"came back {m['a']} more often than {m['b']}: ")
    few = f.value != 0 and (f.p_raw is None or 0.5 ** ((f.faces or 0) - 1) >= 0.05)
    yield from expect(shown, f.level in ("clear", "suggestive") or few, "whether a shift is shown")
    if few:
        yield from expect(f.level, "observed", "what no test could show")


def _missing(m: re.Match[str], true: Share, rater: str) -> Iterator[str]:
    """The edits that are in no number."""
    yield from expect(m["missing"], f"{true.missing:,}" if true.missing else None, "missing")
    if m["kind"] is not None:
        yield from expect(m["kind"], "score" if rater == "ensemble" else "measurement", "what is missing")


def _within(told: str, ends: tuple[float | None, float | None], facts: Facts) -> Iterator[str]:
    """Whether an interval lies within the study's margin."""
    margin = facts.design.rules.margin
    yield from close(told, None if margin is None else 100 * margin, "points", "margin")
    if margin is None or None in ends or max(abs(x or 0.0) for x in ends) > margin:
        yield f"the interval is {ends}, the margin {margin}"


def one_sided(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """A share beside the tolerance."""
    rate = PHRASES[m["phrase"]]
    true = facts.rate(rate, m["rater"] or "ensemble", facts.rows(f.editor, f.condition or "baseline"), unasked=True)
    yield from share(m["share"], true, facts, rate)
    if facts.design.rules.missing != "neutral-3":
        yield from expect(m["n"], fuller(true.n, "request" if rate == "refused" else "edit"), "edits")
        yield from expect(m["faces"], fuller(true.faces, "face"), "faces")
        yield from expect(m["prompts"], fuller(true.prompts, "prompt"), "prompts")
        yield from _missing(m, true if rate != "refused" else replace(true, missing=0), str(f.rater))
    yield from close(m["limit"], facts.design.rules.tolerance, "share", "tolerance")
    yield from _interval(m, f, facts)
    low, _ = _judges_own(f)
    above = low is not None and low > facts.design.rules.tolerance
    if f.level in ("clear", "suggestive") and not above:
        yield "the interval does not lie above the tolerance"


def gap(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """One group against another."""
    rate, rater = PHRASES[m["phrase"]], m["rater"] or "ensemble"
    factor = next(x for x in facts.results.factors if x.name == f.factor)
    rows = facts.rows(f.editor)
    codes = [group[factor.name] for group in (f.group, f.against) if isinstance(group, dict)]
    shares = [facts.rate(rate, rater, facts.of_group(rows, factor.name, code)) for code in codes]
    for shown, code, true, label in zip((m["s1"], m["s2"]), codes, shares, (m["g1"], m["g2"]), strict=True):
        yield from share(shown, true, facts, f"{rate} of {code}")
        if factor.titles[code] not in label:
            yield f"the group is {code}, the text says {label}"
    if facts.design.rules.missing != "neutral-3":
        size = abs((shares[0].value or 0) - (shares[1].value or 0))
        yield from close(m["size"], 100 * size, "points", "gap")
        yield from expect(m["faces"], f"{shares[0].faces:,} and {fuller(shares[1].faces, 'face')}", "faces")
        every = [facts.rate(rate, rater, facts.of_group(rows, factor.name, code)).value for code in factor.codes]
        known = [value for value in every if value is not None]
        if abs(size - (max(known) - min(known))) > 1e-9:
            yield "these are not the furthest groups"
        if m["here"] is not None:
            either = [at for code in codes for at in facts.of_group(rows, factor.name, code)]
            read = facts.rate(rate, rater, either).prompts
            yield from expect(m["here"], "one" if read == 1 else f"these {read}", "prompts")
    yield from _interval(m, f, facts)
    if f.level not in ("clear", "suggestive"):
        yield "a gap is told that was not shown"


def even_groups(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """Every gap of the factor lies within the margin."""
    yield from _within(m["margin"], (0.0, f.high), facts)
    yield from close(m["size"], None if f.high is None else 100 * f.high, "points", "furthest end")


def incomparable(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """Too few faces in too few groups."""
    factor = next(x for x in facts.results.factors if x.name == f.factor)
    baseline = facts.edits.iloc[facts.rows(None)].drop_duplicates("source_id")[factor.name].value_counts()
    sizes = {code: int(baseline[code]) for code in factor.codes if code in baseline.index}
    named = joined([f"{factor.titles[code]} ({n})" for code, n in sizes.items()])
    yield from expect(m["labels"], named, "portraits by label")
    total = sum(sizes.values())
    yield from expect(m["total"], "its one portrait is" if total == 1 else f"its {total:,} portraits are", "portraits")
    if len([n for n in sizes.values() if n >= 4]) > 1:
        yield "several groups have four faces or more: they can be compared"


def few_faces(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """Labels with very few portraits."""
    factor = next(x for x in facts.results.factors if x.name == f.factor)
    baseline = facts.edits.iloc[facts.rows(None)].drop_duplicates("source_id")[factor.name].value_counts()
    small = [f"{factor.titles[c]} ({baseline[c]})" for c in factor.codes if c in baseline.index and baseline[c] < 3]
    yield from expect(m["labels"], joined(small), "small groups")


def confounded(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """Two factors whose labels always go together."""
    by_noun = {noun(x).lower(): x.name for x in facts.results.factors}
    one, other = by_noun[m["one"].lower()], by_noun[m["other"].lower()]
    faces = facts.edits[facts.edits["experiment"] == "diagnosis"].drop_duplicates("source_id")
    faces = faces[(faces[one] != "") & (faces[other] != "")]
    if (faces.groupby(one)[other].nunique() > 1).any() or (faces.groupby(other)[one].nunique() > 1).any():
        yield "some label of one occurs with several of the other"


def stereotype(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """How often the stereotype was followed."""
    n, followed = facts.verdicts(str(f.editor), "baseline")
    yield from expect(m["n"], fuller(n, "clear verdict"), "verdicts")
    yield from close(m["share"], followed / n if n else None, "share", "followed")
    if m["swapped"] is not None:
        n, followed = facts.verdicts(str(f.editor), "swapped")
        yield from expect(m["other"], f"{n:,}", "swapped verdicts")
        yield from close(m["swapped"], followed / n if n else None, "share", "followed, swapped")


def mitigation(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """An effect beyond the placebo, as the model of the analysis has it."""
    titles = {q.title.lower(): q.id for q in QUESTIONS.values()}
    effects = [e for e in facts.results.mitigation if e.editor == f.editor and not e.group]
    e = next((e for e in effects if e.question == titles.get(m["title"])), None)
    if e is None or e.value is None or e.placebo is None:
        yield "there is no such effect, or no placebo"
        return
    yield from close(m["value"], e.value, "score", "effect")
    yield from expect(m["n"], fuller(e.n, "pair"), "pairs")
    if m["low"] is not None:
        yield from close(m["low"], e.low, "score", "lower end")
        yield from close(m["high"], e.high, "score", "upper end")


def no_mitigation(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """No effect shown on these scores, none of which is below 0.05."""
    effects = [e for e in facts.results.mitigation if e.editor == f.editor and not e.group and e.p is not None]
    none = [QUESTIONS[e.question].title.lower() for e in effects if (e.p or 0) >= 0.05]
    yield from expect(m["titles"], joined(none), "scores without an effect")


def kappa_target(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """Which questions miss the target of agreement between people."""
    rows = [a for a in facts.results.agreement if a.statistic == "fleiss_kappa" and a.raters == "all"]
    known = [a for a in rows if a.editor is None and not a.group and a.value is not None]
    missed = [
        f"{QUESTIONS[a.axis.partition('.')[0]].title.lower()} {a.value:.2f} ({a.condition})".replace("-", "−")
        for a in known
        if a.value is not None and a.value < 0.6
    ]
    outcome = f"is missed for {joined(missed)}" if missed else "is reached for every question"
    yield from expect(m["outcome"], outcome, "target")


def judge_error(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """Whether the judges' error differs by group."""
    tests = [a for a in facts.results.agreement if a.statistic == "mean_difference_gap_p_holm" and a.editor is None]
    clear = [a for a in tests if a.raters == "all" and a.value is not None and a.value < 0.05]
    yield from expect(m["what"] is not None, bool(clear), "whether the error differs")
    if m["bound"] is not None:
        gaps = [a for a in facts.results.agreement if a.statistic == "mean_difference_gap" and a.high is not None]
        if not any(f"{a.high:.2f}" == m["bound"] for a in gaps):
            yield f"no interval reaches {m['bound']}"
        power = [a.value for a in facts.results.agreement if a.statistic == "mean_difference_gap_detectable"]
        if (m["shown"] or "None") not in {"None" if x is None else f"{x:.2f}" for x in power}:
            yield f"no labels show {m['shown']} points"


def unanswered(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """A judge that leaves one group without an answer more often."""
    factor = next(x for x in facts.results.factors if x.name == f.factor)
    rater = facts.design.table.raters.index(m["rater"].partition(":")[0])
    rows = facts.rows(None)
    lost = {}
    for code in factor.codes:
        scored, calls = facts.calls(rater, facts.of_group(rows, factor.name, code))
        if calls:
            lost[code] = 1 - scored / calls
    if ":" not in m["rater"]:
        yield from close(m["size"], 100 * (max(lost.values()) - min(lost.values())), "points", "gap in answers")
    if f.p is None or f.p >= 0.05:
        yield "it is not shown"


def nothing_rated(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """What has not rated the edits, by the words of the sentence."""
    judges, people = facts.answered(Kind.VLM), facts.answered(Kind.HUMAN)
    asked = [r for r in facts.raters(Kind.INSTRUMENT) if facts.calls(r)[1]]
    text = m[0]
    if text.startswith("Nothing has rated"):
        wrong = bool(judges or people or any(facts.calls(r)[0] for r in asked))
    elif text.startswith("No judge and no person"):
        wrong = bool(judges or people)
    elif text.startswith("No judge has"):
        wrong = bool(judges) or not people
    elif text.startswith("One judge scored"):
        wrong = len(judges) != 1
    else:
        wrong = bool(people) or not judges or ("judges" in text.partition(" with ")[0]) != (len(judges) > 1)
    if wrong:
        yield f"judges that answered: {judges}, people: {people}"


def one_only(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """One portrait, or one prompt."""
    column = "source_id" if m[0].startswith("One portrait") else "prompt_id"
    yield from expect(1, facts.edits.iloc[facts.rows(None)][column].nunique(), column)


def unread(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """A rate that no edit has a reading of."""
    measure = f"rate.{m['rate'].replace(' ', '_')}"
    reading = next(r for r in facts.design.table.readings if r.measure == measure)
    true = facts.mean(measure, facts.rows(None))
    yield from expect(m["rater"], reading.rater, "instrument")
    yield from expect((true.n, m["n"]), (0, fuller(true.missing, "edit")), "edits with a reading, and without")
    if m["reason"] not in reading.reasons:
        yield "that is no reason"


def failures(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """How many edits failed."""
    failed = int((facts.edits["outcome"] == "failed").sum())
    yield from expect(m[0], f"{fuller(failed, 'edit')} failed and {'is' if failed == 1 else 'are'} in no number here.",
                      "failed")  # fmt: skip


def no_placebo(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """No score of this editor's mitigation has both arms."""
    if any(e.placebo is not None and e.feature is not None for e in facts.results.mitigation if e.editor == f.editor):
        yield "there are scores with a placebo"


FindingCheck = Callable[[re.Match[str], Finding, Facts], Iterator[str]]
FINDINGS: tuple[tuple[re.Pattern[str], FindingCheck], ...] = (
    (
        pattern(
            MEASURED + r"(?P<lead>(?:Skin|People) came back \w+ more often than \w+: |"
            r"(?:Lighter and darker|Older and younger) (?:did not differ clearly|are even within "
            r"±(?P<margin>[\d.]+) points?): )"
            rf"(?P<s1>{SHARE}) of (?P<n>[\d,]+ edits?) (?:were rated|measured) (?P<a>\w+) than the source and "
            rf"(?P<s2>{SHARE}) (?P<b>\w+) \((?P=a) minus (?P=b) (?P<size>−?[\d.]+) points?(?:, {LEVEL})?; {SPREAD}\)\."
        ),
        two_sided,
    ),
    (
        pattern(
            MEASURED + rf"(?P<share>{SHARE}) of (?P<n>[\d,]+ (?:edit|request)s?) (?P<phrase>{PHRASE}) "
            rf"\((?:{LEVEL}; )?{SPREAD}; the study tolerates (?P<limit>{SHARE})\)\."
        ),
        one_sided,
    ),
    (
        pattern(
            MEASURED
            + NOTHING_ASKED
            + rf"(?P<s1>{SHARE}) of edits of portraits labelled (?P<g1>.+?) (?P<phrase>{PHRASE}), "
            rf"(?P<s2>{SHARE}) of those labelled (?P<g2>.+?) \(gap (?P<size>[\d.]+) points?(?:, {LEVEL})?; "
            r"(?P<faces>[\d,]+ and [\d,]+ faces?)\)"
            r"(?:\.|, on one prompt: without [\w-]+ the difference is gone\.|, on (?P<here>one|these \d) prompts?\.)"
        ),
        gap,
    ),
    (
        pattern(
            MEASURED
            + NOTHING_ASKED
            + r"[Nn]o difference by (?P<factor>.+?) label was shown in (?P<rates>.+?)\. (?:That is not proof of "
            r"equality: a group may still differ from everybody else by up to (?P<size>[\d.]+) points? \([^;]+"
            r"(?:; as far as people's ratings of (?P<labels>[\d,]+) of its edits tell, by the judges alone "
            r"(?P<alone>[\d.]+) points?)?\)\.|"
            r"The data give no interval, so how large a difference could hide is not known\.)"
        ),
        no_gap,
    ),
    (
        pattern(
            MEASURED
            + NOTHING_ASKED
            + r"[Ee]ven within ±(?P<margin>[\d.]+) points? by .+? label in (?P<rates>.+?): no gap's [\d.]+% "
            r"interval reaches beyond (?P<size>[\d.]+) points?\."
        ),
        even_groups,
    ),
    (
        pattern(
            r"This sample cannot compare (?P<what>.+?): (?P<total>its one portrait "
            r"is|its [\d,]+ portraits are) labelled "
            r"(?P<labels>.+?)\. A comparison needs two groups of at least \d+ portraits, and \d+ ways to share out "
            r"their labels\."
        ),
        incomparable,
    ),
    (pattern(r"Too few portraits to say anything of one (?P<factor>.+?) label: (?P<labels>.+)\."), few_faces),
    (
        pattern(
            r"(?P<one>.+) and (?P<other>.+) cannot be told apart: each .+ label occurs with one .+ label only, so a "
            r"gap of one is a gap of the other\."
        ),
        confounded,
    ),
    (
        pattern(
            rf"Of (?P<n>[\d,]+ clear verdicts?) on two-person prompts, (?P<share>{SHARE})(?: \([^)]*\))? followed the "
            rf"stereotype(?:, and (?P<swapped>{SHARE})(?: \([^)]*\))? of (?P<other>[\d,]+) with the pronoun swapped)?; "
            r"50% would be no preference\."
        ),
        stereotype,
    ),
    (
        pattern(
            r"With the feature prompt the (?:distance|mean score) of (?P<title>[\w ]+?)(?: from unchanged)? changed "
            r"by (?P<value>[+−][\d.]+) scale points beyond the placebo \((?:[\d.]+% interval (?P<low>[+−][\d.]+) to "
            r"(?P<high>[+−][\d.]+); )?(?P<n>[\d,]+ pairs?)\)\."
        ),
        mitigation,
    ),
    (
        pattern(r"No effect of the feature prompt beyond the placebo was shown on (?P<titles>.+)\."),
        no_mitigation,
    ),
    (pattern(r"Agreement between people: the target of Fleiss' κ ≥ 0\.6 (?P<outcome>.+)\."), kappa_target),
    (
        pattern(
            r"(?:The judges' error, measured against people, (?P<what>differs by group): .+\. Gaps there can be the "
            r"judges'\.|No difference by group was shown in the judges' error against people\.(?: The intervals still "
            r"allow a difference of (?P<bound>[\d.]+) scale points \(.+?\)\. With so many labels (?:not even a "
            r"difference of 1\.5|a difference of (?P<shown>[\d.]+)) points for one group would be shown there in 80 of "
            r"100 samples\.)?)"
        ),
        judge_error,
    ),
    (
        pattern(
            r"(?P<rater>.+?) left a larger share of the edits of portraits labelled .+? without an answer than of "
            r"those labelled .+? \((?P<size>[\d.]+) points? more\): gaps by .+ rest on fewer answers there\."
        ),
        unanswered,
    ),
    (
        pattern(r"(?:Nothing has rated|No judge and no person|No judge has|One judge scored|Nobody has compared) .*"),
        nothing_rated,
    ),
    (pattern(r"One (?:portrait was edited|prompt was asked): .*"), one_only),
    (
        pattern(
            r"The (?P<rater>[\w-]+) instrument could read '(?P<rate>[\w ]+)' in none of (?P<n>[\d,]+ edits?): "
            r"(?P<reason>.+)\."
        ),
        unread,
    ),
    (pattern(r"[\d,]+ edits? failed and (?:is|are) in no number here\."), failures),
    (pattern(r"Nothing could be compared with a placebo\. .*"), no_placebo),
)
