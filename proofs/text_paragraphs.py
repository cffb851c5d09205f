"""Reads all texts of one study."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evenedit.core.records import Kind
from evenedit.report.pages.facts import limits
from evenedit.report.render.index import Index
from evenedit.report.text.methods import texts_for_reuse
from evenedit.report.text.summary import summarise
from proofs.text_caveats import caveat_problems, limit_problems
from proofs.text_claims import finding_problems, read
from proofs.text_designs import Design
from proofs.text_facts import Facts
from proofs.text_methods import METHODS, only_pairs
from proofs.text_people import PEOPLE, card_problems
from proofs.text_summary import SUMMARY, certainty_problems


def check(design: Design) -> tuple[list[str], int]:
    """Every problem of the texts of one study, and how many sentences were read."""
    results = design.results()
    facts, index = Facts(design, results), Index(results)
    texts = {path: text for path, (_, text) in texts_for_reuse(index, design.study).items()}
    problems = [p for f in results.findings for p in (*finding_problems(f, facts), *caveat_problems(f, facts))]
    limiting = list(limits(index))
    problems += limit_problems(limiting, facts)
    sentences = len(results.findings) + sum(len(f.caveats) for f in results.findings) + len(limiting)
    for text, claims in (
        (texts["methods.md"], METHODS),
        (texts.get("human-evaluation.md", ""), PEOPLE),
    ):
        for sentence in split(text):
            problems += read(sentence, claims, facts)
            sentences += 1
    for line in summarise(index):
        problems += read(line.text, SUMMARY, facts)
        problems += certainty_problems(line.text, line.certainty, facts)
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
    unpaired = facts.design.rules.missing != "neutral-3" and not any(facts.ensemble[at] for at in facts.rows(None))
    scored = bool(facts.answered(Kind.VLM)) and not unpaired
    if scored != ("Rates are shares" in texts["methods.md"]) and not only_pairs(facts):
        yield "thresholds of judges without judges' scores, or the reverse"
    for text in texts.values():
        for word in ("balanced over", "representative", "independent people", "randomly", "unbiased", "fair "):
            if word in text.replace("fair up to", ""):
                yield f"the word '{word}' is claimed and nothing here can show it"
