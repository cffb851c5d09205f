"""The claims of the summary."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evenedit.core.records import Estimate, Kind
from evenedit.protocol import QUESTIONS
from proofs.text_claims import (
    ENDS,
    PHRASE,
    PHRASES,
    SHARE,
    Check,
    close,
    expect,
    fuller,
    joined,
    noun,
    pattern,
    share,
)
from proofs.text_facts import Facts
from proofs.text_methods import as_stated, only_pairs, was_asked


def certainty_problems(text: str, certainty: str, facts: Facts) -> Iterator[str]:
    if certainty == "clear" and "error, measured against people" not in text:
        yield f"called clear beside the findings: {text}"


def nothing(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Who has not rated."""
    judges, people = facts.answered(Kind.VLM), facts.answered(Kind.HUMAN)
    measured = [r for r in facts.raters(Kind.INSTRUMENT) if was_asked(facts, r)]
    if not only_pairs(facts) or (judges and facts.rows(None, "baseline", "stereotype")):
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
        yield from close(shown, shares.get(label), "share", f"answered for {label}")


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
        problems.append(
            [*close(m["share"], true.value, "share", "refused"), *expect(m["n"], f"{true.n:,}", "requests")]
        )
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
    (
        pattern(
            r"(?:The judges' error, measured against people, differs|No difference "
            r"by group was shown in the judges' error).+"
        ),
        as_stated,
    ),
    (
        pattern(r"Of (?P<n>[\d,–]+) edits with a score \((?P<missing>[\d,–]+) without\), (?P<list>.+)\."),
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
