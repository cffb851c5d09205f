"""Where ratings come from. Judges, instruments, people and reviewers all leave the same record, a `Rating`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from evenedit.core.records import Kind, Rating, Status
from evenedit.judges.raters import Call, JudgeRater
from evenedit.protocol.rubric import ROLES, SEEN, preferred
from evenedit.storage.store import Store

PICTURE = "picture:"
"""Before the SHA-256 of a source's picture: what replies about it alone are stored under."""


def picture_id(sha256: str) -> str:
    """Return the id of what judges answer about a source's picture alone."""
    return f"{PICTURE}{sha256}"


class RatingSource(Protocol):
    """Somebody who answers questions about edits."""

    @property
    def kind(self) -> Kind:
        """What its raters are."""
        ...

    @property
    def raters(self) -> Sequence[str]:
        """The raters' ids in the order of the table, those who have not answered yet included."""
        ...

    def ratings(self) -> Iterable[Rating]:
        """Return every answer; where a call ended without any, one rating with an empty question says how it ended."""
        ...


class StoredRater(Protocol):
    """A judge or an instrument: its replies are in the study's database under its id and revision."""

    @property
    def id(self) -> str:
        """Its name in tables."""
        ...

    @property
    def revision(self) -> str:
        """Names all that shapes its answers."""
        ...

    @property
    def kind(self) -> Kind:
        """Judge or instrument."""
        ...


def seen_ratings(readings: Mapping[tuple[str, str], Sequence[Rating]], pictures: Mapping[str, str]) -> Iterator[Rating]:
    """Yield how people are seen, by edit: in its source, in the mirrored source, and in its output.

    `readings` are those of single pictures by call and subject; `pictures` the source's picture of each request.
    """
    for request_id, sha256 in pictures.items():
        source = picture_id(sha256)
        for name, key in (
            ("before", (Call.SEE, source)),
            ("again", (Call.REREAD, source)),
            ("after", (Call.SEE, request_id)),
        ):
            for rating in readings.get(key, ()):
                column = f"{rating.question_id.removesuffix(SEEN)}_{name}"
                yield replace(rating, request_id=request_id, question_id=column)


@dataclass(frozen=True, slots=True)
class StoredRatings:
    """What one judge or instrument answered, from the study's database."""

    store: Store
    rater: StoredRater
    pictures: Mapping[str, str] = field(default_factory=dict)
    """By request, the SHA-256 of its source's picture, where judges say how the people in single pictures are seen."""

    @property
    def kind(self) -> Kind:
        """Judge or instrument."""
        return self.rater.kind

    @property
    def raters(self) -> Sequence[str]:
        """The one rater."""
        return (self.rater.id,)

    def ratings(self) -> Iterator[Rating]:
        """Yield every answer under the rater's current revision, of all its calls."""
        ident, kind = self.rater.id, self.rater.kind
        answered: set[str] = set()
        for rating in self.store.ratings(ident, self.rater.revision):
            answered.add(rating.request_id)
            yield rating
        for request_id, status in self.store.answered(ident, self.rater.revision).items():
            if request_id not in answered:
                yield Rating(request_id, "", ident, kind, status)
        if isinstance(self.rater, JudgeRater):
            yield from self._other_calls(self.rater)

    def _other_calls(self, judge: JudgeRater) -> Iterator[Rating]:
        """Yield the answers of a judge's further calls: what it prefers of each pair, questions apart, pictures."""
        for request_id, choice in self._preferences(judge).items():
            yield Rating(request_id, ROLES.preference, judge.id, judge.kind, Status.SCORED, choice)
        if judge.separate:
            yield from self.store.ratings(judge.id, judge.revision_of(Call.SEPARATE))
        if judge.seen and self.pictures:
            yield from self._seen(judge)

    def _seen(self, judge: JudgeRater) -> Iterator[Rating]:
        """Yield how people are seen, by edit: in its source, in the mirrored source, and in its output."""
        readings: dict[tuple[str, str], list[Rating]] = {}
        for call in (Call.SEE, Call.REREAD):
            for rating in self.store.ratings(judge.id, judge.revision_of(call)):
                readings.setdefault((call, rating.request_id), []).append(rating)
        yield from seen_ratings(readings, self.pictures)

    def _preferences(self, judge: JudgeRater) -> Mapping[str, int]:
        """Combine the answers in both orders, by mitigated request."""
        first, second = (
            {r.request_id: r.value for r in self.store.ratings(judge.id, judge.revision_of(call))}
            for call in (Call.BASELINE_FIRST, Call.BASELINE_LAST)
        )
        combined = {ident: preferred(first[ident], second[ident]) for ident in first.keys() & second.keys()}
        return {ident: choice for ident, choice in combined.items() if choice is not None}
