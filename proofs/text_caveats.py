"""Reads what limits a finding, and what limits the whole report: every such sentence is a claim too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from evenedit.core.records import Kind
from evenedit.results.results import Finding
from proofs.text_claims import SIDES, close, expect, fuller, joined, pattern, percent
from proofs.text_facts import Facts, Share

Check = Callable[[re.Match[str], Finding, Facts], Iterator[str]]


def caveat_problems(f: Finding, facts: Facts) -> list[str]:
    """The problems of a finding's caveats; a sentence that no claim fits is one."""
    problems = []
    for text in f.caveats:
        fits = next(((m, check) for form, check in CAVEATS if (m := form.fullmatch(text))), None)
        found = ["no claim fits the caveat"] if fits is None else fits[1](fits[0], f, facts)
        problems += [f"{problem} — in: {text}" for problem in found]
    return problems


def limit_problems(texts: Sequence[str], facts: Facts) -> list[str]:
    """The problems of the limits that a report states."""
    problems = []
    for text in texts:
        fits = next(((m, check) for form, check in LIMITS if (m := form.fullmatch(text))), None)
        found = ["no claim fits the limit"] if fits is None else fits[1](fits[0], facts)
        problems += [f"{problem} — in: {text}" for problem in found]
    return problems


# -- one finding ---------------------------------------------------------------------------------------------------


def shares(f: Finding, facts: Facts) -> list[Share]:
    """What a shift or the two ends of a gap were read on."""
    name = str(f.measure).partition(".")[2]
    rate = SIDES[name][0] if name in SIDES else name
    rows = facts.rows(f.editor, f.condition or "baseline")
    if f.kind != "gap":
        return [facts.rate(rate, str(f.rater), rows, unasked=True)]
    groups = [g for g in (f.group, f.against) if isinstance(g, dict)]
    return [
        facts.rate(rate, str(f.rater), facts.of_group(rows, str(f.factor), g[str(f.factor)]), unasked=False)
        for g in groups
    ]


def imputed(facts: Facts) -> bool:
    """Whether scores that are missing count as unchanged, so that single answers do not tell what was counted."""
    return facts.design.rules.missing == "neutral-3"


def few_prompts(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """How many prompts it was read on."""
    if not imputed(facts):
        name = str(f.measure).partition(".")[2]
        rate = SIDES[name][0] if name in SIDES else name
        rows = facts.rows(f.editor, f.condition or "baseline")
        groups = [str(g[str(f.factor)]) for g in (f.group, f.against) if isinstance(g, dict) and g]
        either = [at for code in groups for at in facts.of_group(rows, str(f.factor), code)] if groups else rows
        read = facts.rate(rate, str(f.rater), either, unasked=f.kind == "shift").prompts
        yield from expect(m["n"], "one prompt" if read == 1 else f"{read} prompts", "prompts")


def untested(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """Too few portraits for any test of a shift."""
    yield from expect(m["n"], fuller(f.faces or 0, "portrait"), "portraits")
    if f.p_raw is not None and 0.5 ** ((f.faces or 0) - 1) < 0.05:
        yield "so many portraits can show a shift"
    if f.level in ("clear", "suggestive"):
        yield f"it is called {f.level}"


def left_out(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """The prompts that ask for the change."""
    name = str(f.measure).partition(".")[2]
    question = name if name in SIDES else facts.design.rules.rates[name].question
    asking = {prompt for prompt, axes in facts.design.table.asks.items() if question in axes}
    edits = facts.edits.iloc[facts.rows(f.editor, f.condition or "baseline")]
    own = [str(prompt) for prompt in edits["prompt_id"] if prompt in asking]
    yield from expect(m["n"], fuller(len(own), "edit"), "edits left out")
    yield from expect(m["which"], joined(list(dict.fromkeys(own))), "prompts left out")


def unscored(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """What is missing of either group."""
    if imputed(facts):
        return
    for told, share in zip((m["one"], m["other"]), shares(f, facts), strict=True):
        yield from expect(told, f"{share.missing:,} of {share.n + share.missing:,}", "edits without a score")
    yield from expect(m["what"], "score" if f.rater == "ensemble" else "measurement", "who rated")


def one_prompt(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """The prompt that the sentence names too."""
    if f"without {m['prompt']} the difference is gone" not in f.text or f.level == "clear":
        yield "the finding does not say so"


def small(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """A group of one or two faces."""
    if not imputed(facts) and min(share.faces for share in shares(f, facts)) >= 3:
        yield "both groups have three faces or more"


def other_prompts(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """p for these prompts, and for prompts like these."""
    tests = (*facts.results.tests, *(t for x in facts.results.measured for t in x.tests))
    own = [t for t in tests if (t.measure, t.editor, t.factor) == (f.measure, f.editor, f.factor)]
    if not any((f"{t.p:.2g}", f"{t.p_prompts:.2g}") == (m["p"], m["like"]) for t in own if t.p_prompts is not None):
        yield "no test has these p"
    if f.level == "clear":
        yield "it is called clear"


def handful(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """Few faces with more than half of a group's events."""
    if imputed(facts):
        return
    name, code = str(f.measure).partition(".")[2], (f.group or {})[str(f.factor)]
    rows = facts.of_group(facts.rows(f.editor), str(f.factor), code)
    by_face = [
        [at for at in rows if facts.edits["source_id"].iat[at] == face]
        for face in dict.fromkeys(facts.edits["source_id"].iloc[rows])
    ]
    read = [share for own in by_face if (share := facts.rate(name, str(f.rater), own)).n]
    events = sorted((round((share.value or 0) * share.n) for share in read), reverse=True)
    yield from expect(m["all"], str(len(events)), "faces")
    few = int(m["few"])
    if not (2 * sum(events[:few]) > sum(events) >= 2 * sum(events[: few - 1]) and 4 * few <= len(events)):
        yield f"the events of the faces are {events}"


def relabelled(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """Said of clear gaps; no more faces than there are."""
    number = 1 if m["n"] == "one face were" else int(m["n"].split()[0])
    if f.level != "clear" or f.kind != "gap" or number >= len(facts.edits["source_id"].unique()):
        yield "it is no clear gap, or there are fewer faces"


def with_people(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """The value of judges and people together."""
    yield from close(m["value"], None if f.value is None else 100 * f.value, "points", "with people")
    for told, end in zip((m["low"], m["high"]), (f.low, f.high), strict=True):
        yield from close(told, None if end is None else 100 * end, "points", "interval with people")
    labelled = {p.labelled for p in facts.results.powered if (p.measure, p.editor) == (f.measure, f.editor)}
    if int(m["n"].replace(",", "")) not in labelled or not facts.answered(Kind.HUMAN):
        yield f"people rated {labelled} of these edits"


def judges_error(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """How unequal the judges' error would have to be: the false calls are those that alone make the gap."""
    low, high = sorted(share.value or 0.0 for share in shares(f, facts))
    yield from expect(f.rater, "ensemble", "who rated")
    if not imputed(facts):
        yield from expect(m["calls"], percent((high - low) / (1 - low)), "false calls")
        yield from expect(m["misses"], percent((high - low) / high), "misses")


def labels(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """How many ratings by people would settle it."""
    wanted = {e.labels for e in facts.results.explained if (e.measure, e.editor) == (f.measure, f.editor)}
    if int(m["n"].replace(",", "")) not in wanted:
        yield f"{wanted} would"


def no_swap(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """No verdict with the pronoun swapped."""
    if facts.verdicts(str(f.editor), "swapped")[0]:
        yield "there are verdicts with the pronoun swapped"


def other_side(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """The share is above one half with one pronoun and not with the other."""
    (n, followed), (n_swapped, swapped) = (facts.verdicts(str(f.editor), c) for c in ("baseline", "swapped"))
    if not n_swapped or (2 * followed > n) == (2 * swapped > n_swapped):
        yield "both shares are on the same side"


def chosen(m: re.Match[str], f: Finding, facts: Facts) -> Iterator[str]:
    """The cases were chosen for their drift."""
    if facts.design.rules.mitigation_cases not in ("drift", "priority") or f.kind != "mitigation":
        yield "the cases were not chosen so"


CAVEATS: tuple[tuple[re.Pattern[str], Check], ...] = (
    (pattern(r"It was read on (?P<n>one prompt), so it says nothing about others\."), few_prompts),
    (pattern(r"It was read on (?P<n>\d prompts): too few to say anything about other prompts\."), few_prompts),
    (pattern(r"No test can tell it from chance: it was read on (?P<n>[\d,]+ portraits?)\."), untested),
    (
        pattern(
            r"(?P<n>[\d,]+ edits?) of (?:a prompt that asks|\d+ prompts that ask) for such a change (?:is|are) left "
            r"out: (?P<which>.+)\."
        ),
        left_out,
    ),
    (
        pattern(
            r"Without a (?P<what>score|measurement) are (?P<one>[\d,]+ of [\d,]+) edits of this group and "
            r"(?P<other>[\d,]+ of [\d,]+) of the one it is compared with\."
        ),
        unscored,
    ),
    (pattern(r"It rests on one prompt: without (?P<prompt>\S+) it is gone\."), one_prompt),
    (pattern(r"One of the two groups has too few faces to stand for its label\."), small),
    (
        pattern(
            r"Prompts treat the groups differently, so others may not show it: p, not adjusted, is (?P<p>[\d.e-]+) "
            r"for these \d+ prompts and (?P<like>[\d.e-]+) for prompts like these\."
        ),
        other_prompts,
    ),
    (
        pattern(r"(?P<few>\d+) of its (?P<all>\d+) faces hold more than half of it: others of this label may differ\."),
        handful,
    ),
    (
        pattern(r"Its test would no longer show it if the label of (at most )?(?P<n>one face were|\d+ faces were) .*"),
        relabelled,
    ),
    (
        pattern(
            r"With people's ratings of (?P<n>[\d,]+) of these edits it is (?P<value>−?[\d.]+) points? \([\d.]+% "
            r"interval (?P<low>−?[\d.]+) to (?P<high>−?[\d.]+)\)\."
        ),
        with_people,
    ),
    (
        pattern(
            r"The judges' own error could make this gap between groups that are alike, if they wrongly called "
            r"(?P<calls>[\d.]+%) of the unaffected edits of the higher group and none of the lower one's, or missed "
            r"(?P<misses>[\d.]+%) of the affected edits of the lower group and none of the higher one's\."
        ),
        judges_error,
    ),
    (pattern(r"Ratings by people of about (?P<n>[\d,]+) edits of each group would settle it\."), labels),
    (pattern(r"There is no pronoun-swapped control, so .*"), no_swap),
    (pattern(r"With the pronoun swapped the share is on the other side: .*"), other_side),
    (pattern(r"The cases were chosen by how their baseline had been rated, .*"), chosen),
)


# -- the whole report ----------------------------------------------------------------------------------------------


def simulated(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Something here is simulated."""
    if not any(name.startswith("simulated") for name in (*facts.edits["editor"], *facts.design.table.raters)):
        yield "nothing is simulated"


def few_faces(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Faces, and combinations of the labels that occur among them."""
    edits = facts.edits.iloc[facts.rows(None)]
    told = 1 if m["faces"] == "is one face" else int(m["faces"].split()[1].replace(",", ""))
    if told > edits["source_id"].nunique():
        yield f"there are {edits['source_id'].nunique()} faces"


def of_labels(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """The factors of the study."""
    told = set(re.split(", | and ", m["names"]))
    yield from expect(len(told), len(facts.results.factors), "factors")


def instruments(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Instruments measured."""
    if not facts.results.measured:
        yield "no instrument measured"


def judges(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """Judges were asked."""
    if not facts.raters(Kind.VLM):
        yield "there is no judge"


def thresholds(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """There is a sensitivity table."""
    if not facts.answered(Kind.VLM) or not facts.results.sensitivity:
        yield "no judge answered, so there is no such table"


def aging(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """A prompt asks for another age, and its ratings are no part of the age axis."""
    if facts.design.rules.aging_in_age_axis or not any("aging" in e.measure for e in facts.results.estimates):
        yield "they are in the age axis, or there are none"


def always(m: re.Match[str], facts: Facts) -> Iterator[str]:
    """True of any audit."""
    yield from ()


LIMITS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Facts], Iterator[str]]], ...] = (
    (pattern(r"These numbers come from SIMULATED data\. .*"), simulated),
    (pattern(r"There (?P<faces>is one face|are [\d,]+ faces) for [\d,]+ combinations? of labels, .*"), few_faces),
    (pattern(r"Labels of (?P<names>.+) are the dataset's labels, given by its annotators\. .*"), of_labels),
    (pattern(r"Instruments measure pixels, not meaning: .*"), instruments),
    (pattern(r"Scores are ratings, not measurements\. .*"), judges),
    (pattern(r"A rate depends on its threshold .*; the sensitivity table shows both\."), thresholds),
    (pattern(r"Age ratings of prompts that ask for another age are left out of the age axis\."), aging),
    (pattern(r"The findings hold for these prompts, settings, seeds and versions\. .*"), always),
)
