"""The reader of judges' replies over thousands of mangled replies: `python -m validation fuzz`.

REPLIES in the environment sets another number of replies per kind of damage.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenedit.core.interfaces import Reply
from evenedit.core.records import Question, Status
from evenedit.judges.parsing import parse
from evenedit.protocol.rubric import AXES, QUESTIONS
from validation.page import Validation, size, table

SEED = 5
SCALES = [QUESTIONS[axis] for axis in AXES]
VERDICT = [QUESTIONS["stereotype"], QUESTIONS["target_role"]]
SAME, NEVER, STANDS = "as given or not at all", "not read", "only what stands in it"
"""What may become of a reply: its own scores or none, none, or only values that stand in the mangled text."""
SIGNS = '{}[]":,\\\n\t 0123456789-.eE+abnulltruefalse\0\ud800é漢'
Answer = dict[str, Any]
Chance = random.Random
Reader = Callable[[str, Sequence[Question]], Reply]


def note(chance: Chance) -> str:
    """Some words of a model, quotes and braces among them."""
    return "".join(chance.choice(["a coat ", "{red} ", '"as asked" ', "\\ ", "} ", "\n", "é ", "4 "]) for _ in range(6))


def answer(chance: Chance, questions: Sequence[Question]) -> Answer:
    """A good answer: every question with a value, or now and then null, never all of them null."""
    values: Answer = {q.id: said(q, chance.randint(1, len(q.labels))) for q in questions}
    if chance.random() < 0.2:
        values[chance.choice(list(values))] = None
    return {"observations": {"edit": note(chance)}, "scores": values, "evidence_summary": note(chance)}


def said(question: Question, value: int) -> int | str:
    """How a reply writes a value."""
    return question.labels[value - 1] if question.sided == "choice" else value


def with_value(values: Callable[[Chance, Any], Any]) -> Callable[[Chance, Answer], str]:
    """Damage that replaces the value of one question that has one."""

    def damage(chance: Chance, whole: Answer) -> str:
        name = chance.choice([name for name, value in whole["scores"].items() if value is not None])
        scores = whole["scores"] | {name: values(chance, whole["scores"][name])}
        return json.dumps(whole | {"scores": scores})

    return damage


def in_prose(chance: Chance, whole: Answer) -> str:
    before = chance.choice(
        ["", "Sure! Here: ", "I looked at {both} images. ", "```json\n", "<think>4? 5?</think>", "\n\n"]
    )
    after = chance.choice(["", "\n```", " Hope this helps!", " {Done}", "\n\n"])
    return before + json.dumps(whole, indent=chance.choice([None, 2])) + after


def cut_short(chance: Chance, whole: Answer) -> str:
    text = json.dumps(whole)
    return text[: chance.randrange(len(text))]


def contradicting(chance: Chance, whole: Answer) -> str:
    name, value = next((n, v) for n, v in whole["scores"].items() if v is not None)
    labels = QUESTIONS[name].labels
    other = value % len(labels) + 1 if isinstance(value, int) else labels[labels.index(value) - 1]
    return (
        json.dumps(whole)
        + note(chance).translate({ord(c): None for c in '{}"\\'})
        + json.dumps({"scores": {name: other}})
    )


def repeated_key(chance: Chance, whole: Answer) -> str:
    name, value = chance.choice(list(whole["scores"].items()))
    return json.dumps(whole).replace('"scores": {', f'"scores": {{"{name}": {json.dumps(value)}, ', 1)


def missing_key(chance: Chance, whole: Answer) -> str:
    gone = chance.choice(list(whole["scores"]))
    return json.dumps(whole | {"scores": {n: v for n, v in whole["scores"].items() if n != gone}})


def no_values(chance: Chance, whole: Answer) -> str:
    empty = chance.choice([{}, dict.fromkeys(whole["scores"]), [], "4", 4, None])
    return json.dumps(whole | {"scores": empty})


def wrong_signs(chance: Chance, whole: Answer) -> str:
    """Some signs of the reply are replaced, taken away or put in, anywhere."""
    text = list(json.dumps(whole))
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(text))
        text[at : at + chance.randint(0, 1)] = chance.choice(["", chance.choice(SIGNS)])
    return "".join(text)


def wrong_scores(chance: Chance, whole: Answer) -> str:
    """As above, but only within the scores, where it matters most."""
    text = json.dumps(whole["scores"])
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(SIGNS) + text[at + chance.randint(0, 1) :]
    return '{"scores": ' + text + "}"


def shuffled_pieces(chance: Chance, whole: Answer) -> str:
    text = json.dumps(whole)
    cuts = sorted(chance.sample(range(len(text)), 4))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    chance.shuffle(pieces)
    return "".join(pieces)


def noise(chance: Chance, whole: Answer) -> str:
    words = ["scores", *whole["scores"], "5", "3", "null"]
    pieces = [chance.choice([chance.choice(SIGNS), json.dumps(chance.choice(words))]) for _ in range(60)]
    return "".join(pieces)


@dataclass(frozen=True)
class Damage:
    """A way to mangle a reply, and what may become of it then."""

    name: str
    may: str
    make: Callable[[Chance, Answer], str]


DAMAGES = [
    Damage("none, in prose, fenced or after thoughts", SAME, in_prose),
    Damage("cut short", NEVER, cut_short),
    Damage("a number off the scale", NEVER, with_value(lambda c, _: c.choice([0, -1, 6, 7, 10, 55, 10**30]))),
    Damage("a decimal number", NEVER, with_value(lambda c, _: c.choice([2.5, 4.0, 1e0, 4.999]))),
    Damage("a quoted number", NEVER, with_value(lambda c, _: str(c.randint(1, 5)))),
    Damage("true or false", NEVER, with_value(lambda c, _: c.random() < 0.5)),
    Damage("NaN or infinity", NEVER, with_value(lambda c, _: c.choice([float("nan"), float("inf"), -float("inf")]))),
    Damage("a list or object for a value", NEVER, with_value(lambda c, v: c.choice([[v], {"score": v}, []]))),
    Damage("words for a value", NEVER, with_value(lambda c, _: c.choice(["four", "4/5", "high", "", "unclear"]))),
    Damage("two answers that differ", NEVER, contradicting),
    Damage("the same key twice", NEVER, repeated_key),
    Damage("no scores at all", NEVER, no_values),
    Damage("a question left out", STANDS, missing_key),
    Damage("wrong signs anywhere", STANDS, wrong_signs),
    Damage("wrong signs in the scores", STANDS, wrong_scores),
    Damage("pieces in another order", STANDS, shuffled_pieces),
    Damage("noise with the right words in it", STANDS, noise),
]


def stands(text: str, question: Question, value: int) -> bool:
    """Whether the text itself gives the question this value."""
    return bool(re.search(rf'"{question.id}"\s*:\s*{json.dumps(said(question, value))}\s*[,}}]', text))


def faults(reply: Reply, text: str, questions: Sequence[Question], whole: Answer, may: str) -> set[str]:
    """What is wrong about how a mangled reply was read."""
    given = {q.id: reply.values.get(q.id) for q in questions}
    numbers = [(q, given[q.id]) for q in questions if given[q.id] is not None]
    if reply.status is not Status.SCORED:
        return {"guessed"} if reply.values or reply.status is not Status.UNPARSEABLE else set()
    if any(type(value) is not int or not 1 <= value <= len(question.labels) for question, value in numbers):
        return {"outside"}
    wanted = {q.id: whole["scores"][q.id] for q in questions}
    is_same = {q.id: None if given[q.id] is None else said(q, given[q.id]) for q in questions} == wanted
    is_kept = all(stands(text, question, value) for question, value in numbers)
    is_allowed = is_kept and bool(numbers) and (may == STANDS or (may == SAME and is_same))
    return set() if is_allowed else {"guessed"}


def read(damage: Damage, chance: Chance, reader: Reader) -> list[str]:
    """What became of one mangled reply: how it was read, and what is wrong about that."""
    questions = chance.choice([SCALES, VERDICT])
    whole = answer(chance, questions)
    text = damage.make(chance, whole)
    try:
        reply = reader(text, questions)
    except Exception:
        return ["raised"]
    return [reply.status.value, *faults(reply, text, questions, whole, damage.may)]


def mangled(replies: int, seed: int = SEED, reader: Reader = parse) -> dict[str, Counter[str]]:
    """By kind of damage, what a reader makes of so many replies."""
    chance = Chance(seed)
    return {d.name: Counter(end for _ in range(replies) for end in read(d, chance, reader)) for d in DAMAGES}


WRONG = {"outside": "values outside the scale", "guessed": "guessed scores", "raised": "exceptions"}


def run(folder: Path) -> Validation:
    """So many replies of each kind."""
    replies = size("REPLIES", 3000)
    found = mangled(replies)
    rows = []
    for damage in DAMAGES:
        ends = found[damage.name]
        read_as = {"read": ends[Status.SCORED.value], "unparseable": ends[Status.UNPARSEABLE.value]}
        told = {"damage": damage.name, "replies": replies, "may be read": damage.may}
        rows.append(told | read_as | {title: ends[end] for end, title in WRONG.items()})
    totals = {title: sum(ends[end] for ends in found.values()) for end, title in WRONG.items()}
    return Validation(
        "However a judge's reply is mangled, its reader never raises, never gives a value outside the scale, and never "
        "gives a score that does not stand in the reply.",
        table(rows),
        SEED,
        {"mangled replies": replies * len(DAMAGES)},
        [f"{count:,} {title}" for title, count in totals.items() if count],
    )
