"""Where ratings come from. Judges, instruments, people and reviewers all leave the same record, a `Rating`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evenedit.core.records import Kind, Rating, Status
from evenedit.protocol.rubric import preferred
from evenedit.storage.store import Store

PREFERENCE = "preference"


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


@dataclass(frozen=True, slots=True)
class StoredRatings:
    """What one judge or instrument answered, from the study's database."""

    store: Store
    rater: StoredRater

    @property
    def kind(self) -> Kind:
        """Judge or instrument."""
        return self.rater.kind

    @property
    def raters(self) -> Sequence[str]:
        """The one rater."""
        return (self.rater.id,)

    def ratings(self) -> Iterator[Rating]:
        """Yield every answer under the rater's current revision, and what it prefers of each pair."""
        ident, kind = self.rater.id, self.rater.kind
        answered: set[str] = set()
        for rating in self.store.ratings(ident, self.rater.revision):
            answered.add(rating.request_id)
            yield rating
        for request_id, status in self.store.answered(ident, self.rater.revision).items():
            if request_id not in answered:
                yield Rating(request_id, "", ident, kind, status)
        for request_id, choice in self._preferences().items():
            yield Rating(request_id, PREFERENCE, ident, kind, Status.SCORED, choice)

    def _preferences(self) -> Mapping[str, int]:
        """Combine the answers in both orders, by mitigated request."""
        first, second = (
            {r.request_id: r.value for r in self.store.ratings(self.rater.id, f"{self.rater.revision}-{order}")}
            for order in ("ab", "ba")
        )
        combined = {ident: preferred(first[ident], second[ident]) for ident in first.keys() & second.keys()}
        return {ident: choice for ident, choice in combined.items() if choice is not None}
