"""The pages of one participant's task: opaque ids, pictures and questions in the order drawn for them."""

from __future__ import annotations

import hashlib
import hmac
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenedit.config.study_file import StudyFile
from evenedit.core.records import Condition, Prompt, Question
from evenedit.storage.store import Store
from evenedit.storage.survey_schema import displayed, items, participants
from evenedit.storage.survey_store import SurveyStore
from evenedit.survey.languages import Languages
from evenedit.survey.questions import columns_of, display_order, item_questions
from evenedit.survey.tasks import INSTRUCTED, Material
from evenedit.survey.visits import AskedQuestion, NotAllowedError, ParticipantItem

if TYPE_CHECKING:
    from PIL.Image import Image


PICTURES = 256
"""Encoded pictures kept in memory."""


@dataclass(frozen=True, slots=True)
class TaskPage:
    """One item as one participant sees it."""

    item: int
    public: ParticipantItem
    hashes: Mapping[str, str]
    """Stored pictures by opaque picture id."""
    questions: Mapping[tuple[str, str], Question]
    """By image (A, B or "" for both) and column of answers: a question, or an option of a set."""


@dataclass(frozen=True, slots=True)
class ParticipantTask:
    """The task of one participant; it never changes once it was drawn."""

    participant: int
    pages: Sequence[TaskPage]
    by_id: Mapping[str, TaskPage]
    pictures: Mapping[str, str]
    """Stored pictures by opaque picture id, over all pages."""


class ParticipantTasks:
    """The tasks of a survey's participants, cached in memory."""

    def __init__(self, database: SurveyStore, material: Material, file: StudyFile, store: Store) -> None:
        self._database = database
        self._material = material
        self._file, self._store = file, store
        self._sources = store.sources()
        section = file.sections.survey
        self._languages = Languages(file.folder, section.languages if section else ())
        self._key = database.key
        self._known: dict[str, ParticipantTask] = {}
        self._jpeg = lru_cache(PICTURES)(self._encode)

    def of(self, token: str) -> ParticipantTask:
        """Return the task of a participant; raise `NotAllowedError` if there is none."""
        if token not in self._known:
            row = self._database.row(sa.select(participants).where(participants.c.token == token))
            if row is None:
                raise NotAllowedError("your session has expired; please open the link again")
            if row.task is None:
                raise NotAllowedError("there is no task yet")
            query = sa.select(displayed.c.place, displayed.c.swapped, items).join(items, items.c.id == displayed.c.item)
            rows = self._database.rows(query.where(displayed.c.participant == row.id).order_by(displayed.c.place))
            pages = [self._page(row.id, r) for r in rows]
            by_id = {page.public.id: page for page in pages}
            pictures = {ident: image for page in pages for ident, image in page.hashes.items()}
            self._known[token] = ParticipantTask(row.id, pages, by_id, pictures)
        return self._known[token]

    def forget(self, token: str) -> None:
        """Drop the task of a participant who withdrew."""
        self._known.pop(token, None)

    def picture(self, token: str, picture: str) -> bytes | None:
        """Return a picture of the participant's task; None for any other id."""
        image = self.of(token).pictures.get(picture)
        return None if image is None else self._jpeg(image)

    def opaque(self, *what: object) -> str:
        """Return an opaque id: a keyed hash."""
        message = "\0".join(str(part) for part in what).encode()
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()[:24]

    def _page(self, participant: int, row: Any) -> TaskPage:
        outputs = dict(zip("AB", reversed(row.outputs) if row.swapped else row.outputs, strict=False))
        request = self._material.requests[row.outputs[0]]
        prompt = self._file.prompt(request.prompt_id)
        sources = [self._sources[s].image for s in request.source_ids]
        names = ["source"] if len(sources) == 1 else [f"source_{n}" for n in range(1, len(sources) + 1)]
        hashes = dict(zip(names, sources, strict=True))
        hashes |= {slot: str(self._material.edits[ident].image) for slot, ident in outputs.items()}
        rubric, seed = self._file.rubric, self._file.sections.study.seed
        experiments = [self._material.requests[ident].experiment for ident in outputs.values()]
        labels = self._sources[request.source_ids[0]].attributes if len(sources) == 1 else None
        questions = item_questions(row.survey, prompt, experiments, rubric, labels)
        pictures = {slot: self.opaque("picture", participant, row.id, slot) for slot in hashes}
        value = row.expected.get("value") if row.kind == INSTRUCTED else None
        item = ParticipantItem(
            number=row.place,
            id=self.opaque("item", participant, row.id),
            instruction=_instruction(value) if value else request_text(prompt, request.condition),
            pictures=pictures,
            questions=[
                AskedQuestion(slot, question, () if value else display_order(question, seed, participant))
                for slot, question in questions
            ],
            answers={},
            role=str(prompt.occupation) if row.survey == 3 else "",
            coded=str(prompt.coded_gender) if row.survey == 3 else "",
            instructed=value,
            translations={} if value else self._translations(prompt, request.condition),
        )
        return TaskPage(
            row.id,
            item,
            {pictures[slot]: sha for slot, sha in hashes.items()},
            {
                (slot, column): stored
                for slot, question in questions
                for column, stored in columns_of(question, rubric).items()
            },
        )

    def _translations(self, prompt: Prompt, condition: Condition) -> Mapping[str, str]:
        """Return the request in other languages; none for swapped pronouns."""
        return self._languages.requests(prompt) if request_text(prompt, condition) == prompt.text else {}

    def _encode(self, sha256: str) -> bytes:
        return jpeg(self._store.images.open(sha256))


def jpeg(image: Image) -> bytes:
    """Return a stored picture as JPEG, without metadata."""
    picture = image.convert("RGB")
    picture.info.clear()
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=92)
    return buffer.getvalue()


def _instruction(value: int) -> str:
    return f"Attention check: please do not rate these images. Choose answer number {value} for every question here."


def request_text(prompt: Prompt, condition: Condition) -> str:
    """Return the request to the editor, without the feature prompt."""
    return prompt.swapped_text if condition.other_pronoun and prompt.swapped_text else prompt.text
