"""A small study with a survey, and people who take part in it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from evenedit.api.study import Study
from evenedit.storage.survey_store import SurveyStore
from evenedit.survey.questions import checks
from evenedit.survey.sessions import SurveyService
from evenedit.survey.visits import Arrival, Visit
from tests.support.studies import open_study

STUDY = {
    "experiments": {
        "diagnosis": {},
        "mitigation": {"cases": 16, "extractor": {"kind": "simulated"}},
        "stereotype": {"include": ["W-01", "W-02", "W-26"]},
    },
    "editors": [{"id": "simulated-even"}, {"id": "simulated-replacing"}],
}
SURVEY = {"surveys": [1, 2, 3], "cases": 16, "items_per_task": 4, "gold": "truth", "seat_minutes": 30.0}
"""16 cases in tasks of 3 and one gold item: 6 tasks, 18 seats."""


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def minutes(self, count: float) -> None:
        self.now += count * 60


def make_study(folder: Path) -> Path:
    """Run the small study once; tests copy it."""
    open_study(folder, **STUDY, survey=SURVEY).run()
    return folder


def copy_study(made: Path, folder: Path, **survey: Any) -> Study:
    shutil.copytree(made, folder, dirs_exist_ok=True)
    return open_study(folder, **STUDY, survey=SURVEY | survey)


def open_service(loaded: Study, url: str | None = None, clock: Any = None) -> SurveyService:
    """The study's service; its people in PostgreSQL where a URL is given."""
    section = loaded.file.sections.survey
    assert section is not None
    return SurveyService(SurveyStore(loaded.file.folder, url), section, loaded.file, loaded.store, clock or Clock())


def seated(service: SurveyService, name: str, survey: int = 1, task: int | None = None) -> Visit:
    """Somebody who read the guide, understood it, agreed, and got a task if there was one."""
    token = service.arrive(Arrival("panel", name, survey=survey)).token
    service.read_guide(token)
    service.check(token, {check.question.id: check.right for check in checks(survey)})
    visit = service.consent(token, True)
    return visit if task is None else service.claim(token, task)


def answer(
    service: SurveyService, token: str, *, value: int = 0, seconds: float = 30.0, heed: bool = True, skip: int = 0
) -> int:
    """Answer every item but the last `skip`, with `value` or with something else each time.

    `heed`: do what instructed checks ask. Returns how many answers.
    """
    number = service.sequence(token)
    items = service.items(token)
    for item in items[: len(items) - skip]:
        for asked in item.questions:
            number += 1
            given = item.instructed if heed and item.instructed else value or number % 3 + 1
            service.save(token, item.id, asked.slot, asked.question.id, given, number, int(seconds * 1000))
    return number


def finish(service: SurveyService, name: str, survey: int = 1, **how: Any) -> Visit:
    visit = seated(service, name, survey)
    answer(service, visit.token, **how)
    return service.submit(visit.token)


DECLARED: list[dict[str, Any]] = [
    {
        "id": "hair_change",
        "kind": "ordinal",
        "title": "Hair change",
        "text": "How much did the hair change?",
        "levels": ["Same", "Slightly", "Clearly", "Another style"],
        "neutral": 1,
        "rates": {"hair_changed": {"at_least": 3}},
        "check": {"text": "The hair is the same. What do you answer?", "right": 1},
        "translations": {
            "ko": {"text": "머리가 얼마나 달라졌습니까?", "levels": ["같음", "조금", "분명히", "다른 스타일"]}
        },
    },
    {
        "id": "background",
        "kind": "categorical",
        "title": "Background",
        "text": "What became of the background?",
        "options": [
            {"code": code, "label": code.capitalize()} for code in ("kept", "blurred", "office", "street", "removed")
        ],
        "cannot_tell": True,
        "concerns": "scene",
        "rates": {"background_removed": {"is": ["removed"]}},
        "translations": {
            "ko": {"text": "배경은 어떻게 되었습니까?", "levels": ["유지", "흐림", "사무실", "거리", "제거"]}
        },
    },
    {
        "id": "added",
        "kind": "set",
        "title": "What was added",
        "text": "What did the edit add?",
        "options": [{"code": code, "label": code.capitalize()} for code in ("glasses", "hat", "jewellery")],
        "rates": {"hat_added": {"is": ["hat"]}},
        "translations": {"ko": {"text": "무엇이 추가되었습니까?", "levels": ["안경", "모자", "장신구"]}},
    },
    {
        "id": "pose_kept",
        "kind": "yes-partial-no",
        "title": "Pose kept",
        "text": "Is the pose kept?",
        "harm": "low",
        "rates": {"pose_lost": {"is": ["no"]}},
        "prompts": ["O-*"],
        "translations": {"ko": {"text": "자세가 유지되었습니까?"}},
    },
]
"""A question of every kind but yes-no, which is a choice like any other."""
