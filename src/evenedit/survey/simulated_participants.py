"""Simulated people who take part through the real HTTP interface. Everything they touch is SIMULATED.

They are shown the same pages as everybody, look up what the simulated editor is known to have done, and make the
errors of a simulated judge.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from evenedit.config.study_file import StudyFile
from evenedit.core.errors import EvenEditError
from evenedit.core.interfaces import Case
from evenedit.core.records import ConditionKind, Request, Source
from evenedit.simulation.editors import truth_of
from evenedit.simulation.judges import SimulatedJudge, drift_points
from evenedit.storage.store import Store
from evenedit.survey.browser import Browser
from evenedit.survey.participant_tasks import jpeg, request_text
from evenedit.survey.questions import ROLE, checks, compares_outputs, heeded

PACE = 3.5
"""Median seconds that a simulated answer takes."""


class KnownPictures:
    """The ground truth of the outputs that a survey shows, found by the pictures on a page."""

    def __init__(self, file: StudyFile, store: Store, outputs: Iterable[str]) -> None:
        self.rubric = file.rubric
        self._images = store.images
        self._file = file
        sources, edits, requests = store.sources(), store.edits(), store.requests()
        wanted = {self._page(requests[output], sources) for output in outputs}
        displayed = cache(lambda image: _hash(jpeg(self._images.open(image))))
        self._known: dict[tuple[str, ...], tuple[str, str]] = {}
        for ident, request in requests.items():
            edit = edits.get(ident)
            if edit is None or not edit.image or request.condition.kind is ConditionKind.NULL_PAIR:
                continue
            if "truth" not in edit.detail:
                raise EvenEditError(f"simulated participants need simulated editors; '{request.editor}' is a real one")
            page = self._page(request, sources)
            if page in wanted:
                pictures = map(displayed, (*page[1:], edit.image))
                self._known.setdefault((page[0], *pictures), (edit.image, request.prompt_id))

    def _page(self, request: Request, sources: Mapping[str, Source]) -> tuple[str, ...]:
        """Return the instruction and the sources of a page."""
        prompt = self._file.prompt(request.prompt_id)
        return request_text(prompt, request.condition), *(sources[ident].image for ident in request.source_ids)

    def find(self, instruction: str, *pictures: bytes) -> tuple[Case, Mapping[str, int]]:
        """Return the case that a page shows, and its ground truth."""
        image, prompt_id = self._known[instruction, *(_hash(picture) for picture in pictures)]
        edited = self._images.open(image)
        prompt = self._file.prompt(prompt_id)
        return Case([], edited, prompt, prompt.text), truth_of(edited)[1]


class SimulatedParticipant:
    """A participant who answers through the survey's pages like everybody else."""

    def __init__(self, name: str, number: int, known: KnownPictures, settings: Mapping[str, Any]) -> None:
        self.name = name
        self._known, self._rubric = known, known.rubric
        self._questions = {spec.id: spec.question for spec in known.rubric.specs}
        self._paired = compares_outputs(known.rubric)
        self._judge = SimulatedJudge(**{**settings, "seed": 1000 + number, "missing": 0.0})
        self._rng = np.random.default_rng(1000 + number)

    def enter(self, browser: Browser, link: str, survey: int) -> bool:
        """Go from the link to a task. Returns False if there is none left."""
        browser.open(link)
        right = {check.question.id: str(check.right) for check in checks(survey, self._rubric)}
        browser.send_form("/survey/guide")
        browser.send_form("/survey/check", right)
        page = browser.send_form("/survey/consent", {"decision": "agree", "adult": "yes", "agreed": "yes"})
        if page.path == "/survey/choose":
            numbers = sorted({int(n) for n in re.findall(rb'name="task"[^>]*value="(\d+)"', page.content)})
            for number in numbers:
                page = browser.send_form("/survey/choose", {"task": str(number)}, conflict=True)
                if page.status != 409:
                    break
        return page.path == "/survey/task"

    def work(self, browser: Browser) -> int:
        """Answer every open item and submit; returns the number of answers given."""
        task = json.loads(browser.open("/survey/items").content)
        sequence, count = int(task["sequence"]), 0
        for item in task["items"]:
            done = {(a["slot"], a["question"]) for a in item["answers"]}
            elapsed = 0.0
            for (slot, question), value in self._answers(browser, item).items():
                elapsed += PACE * float(self._rng.lognormal(0, 0.4))
                if (slot, question) in done:
                    continue
                sequence, count = sequence + 1, count + 1
                body = {"item": item["id"], "slot": slot, "question": question, "value": value, "sequence": sequence}
                browser.send_json("/survey/answers", body | {"milliseconds": int(1000 * elapsed)})
        browser.send_form("/survey/submit")
        return count

    def _answers(self, browser: Browser, item: Mapping[str, Any]) -> dict[tuple[str, str], int]:
        """Return this participant's answers to an item, or those an instructed check requires."""
        rows = [(slot, row["id"]) for row in item["questions"] for slot in row["slots"]]
        stored = [(slot, column) for row in item["questions"] for slot in row["slots"] for column in row["columns"]]
        instruction = str(item["instruction"])
        if item["instructed"]:
            value = int(re.findall(r"\d", instruction)[0])
            return {(slot, column): heeded(column, value, self._rubric) for slot, column in stored}
        pictures = {p["slot"]: browser.open(f"/survey/pictures/{p['id']}").content for p in item["pictures"]}
        sources = [content for slot, content in pictures.items() if slot.startswith("source")]
        seen = {
            slot: self._known.find(instruction, *sources, pictures[slot]) for slot in ("A", "B") if slot in pictures
        }
        answers: dict[tuple[str, str], int] = {}
        for slot, question in rows:
            if question in self._paired:
                answers[slot, question] = self._prefers(seen["A"][1], seen["B"][1])
            elif not slot:  # nothing is known of how two outputs compare otherwise
                answers[slot, question] = self._rubric.no_change(question)
            elif question == ROLE.id:
                answers[slot, question] = self._role(*seen[slot])
        for slot, (case, _) in seen.items():
            questions = [self._questions[question] for s, question in rows if s == slot]
            reply = self._judge.judge(case, questions)
            answers |= {(slot, q): int(value) for q, value in reply.values.items() if value is not None}
        return {key: answers[key] for key in stored}

    def _prefers(self, a: Mapping[str, int], b: Mapping[str, int]) -> int:
        if self._rng.random() < self._judge.error:
            return int(self._rng.integers(1, 4))
        first, second = drift_points(a), drift_points(b)
        return 3 if first == second else 1 if first < second else 2

    def _role(self, case: Case, truth: Mapping[str, int]) -> int:
        if self._rng.random() < self._judge.error:
            return int(self._rng.integers(1, 4))
        coded = 1 if case.prompt.coded_gender == "Male" else 2
        return {1: coded, 2: 3 - coded}.get(truth["stereotype"], 3)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def name_of(number: int) -> str:
    """Return the name of the simulated participant with this number."""
    return f"simulated-person-{number:02d}"
