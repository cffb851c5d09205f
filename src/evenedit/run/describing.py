"""The describing stage: a feature prompt for every portrait of the mitigation, asked within the run's budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

from evenedit.config.study_file import StudyFile
from evenedit.core import plugins
from evenedit.core.errors import ENDING, EvenEditError, Failed
from evenedit.core.log import log
from evenedit.core.records import Source
from evenedit.judges.calling import BudgetSpent, CallPolicy
from evenedit.judges.feature_prompts import Extractor, FeaturePrompt, VLMExtractor, extractor_id
from evenedit.judges.parsing import ModelReply
from evenedit.run.collecting import Collect
from evenedit.run.executors import MOST_CALLS, limits_of
from evenedit.run.executors.threads import Lane, run_in_lanes
from evenedit.run.streak import FailureStreak, Stop
from evenedit.storage.store import Store

SPENT = "the budget is spent"


@dataclass(frozen=True, slots=True)
class Described:
    """The result for one portrait."""

    source: str
    feature: FeaturePrompt | None
    """None where the call failed, or was not made."""
    reason: str = ""


class DescribingStage:
    """Describes the portraits that have no feature prompt, many at once, and records why some fail."""

    def __init__(self, file: StudyFile, store: Store, asking: CallPolicy) -> None:
        self.file, self.store, self.asking = file, store, asking
        self.missing: Counter[str] = Counter()
        """Portraits that wait for their feature prompt, by reason."""
        self.stops: dict[str, Stop] = {}
        """Extractors that were stopped, by id."""
        self._calls: SimpleQueue[tuple[str, ModelReply]] = SimpleQueue()
        """Calls that were made and are not stored yet, by the key of their content."""

    def run(self, described: Sequence[str], sources: Mapping[str, Source], collect: Collect) -> None:
        """Describe these portraits with each extractor of the mitigation."""
        section = self.file.sections.experiments.mitigation
        for plugged in section.extractors if section else ():
            ident = extractor_id(plugged.kind, plugged.settings)
            known = self.store.features(ident)
            left = [source for source in described if source not in known]
            if left and ident not in self.stops:
                extractor = plugins.build("extractors", plugged.kind, plugged.settings)
                remote = plugins.is_remote("extractors", plugged.kind)
                self._describe(ident, extractor, [sources[s] for s in left], len(described), remote, collect)

    def _describe(
        self, ident: str, extractor: Extractor, left: Sequence[Source], total: int, remote: bool, collect: Collect
    ) -> None:
        self._limit(ident, extractor)
        executor = self.file.sections.executor
        streak = FailureStreak(f"extractor '{ident}'", executor.max_failures)

        def work(source: Source) -> Described:
            if streak.stop is not None:
                return Described(source.id, None, str(streak.stop.reason))
            try:
                feature = extractor.extract(self.store.images.open(source.image))
            except BudgetSpent:
                return Described(source.id, None, SPENT)
            except EvenEditError as error:
                streak.end(str(error), mistake=error)
                return Described(source.id, None, str(error))
            except (Exception, *ENDING) as error:  # this portrait's cases wait for the next run
                reason = f"{type(error).__name__}: {error}"
                streak.note(error.failure if isinstance(error, Failed) else "crash", reason)
                return Described(source.id, None, reason)
            streak.note("", "")
            return Described(source.id, feature)

        def on_timeout(source: Source, limit: float) -> Described:
            reason = f"no answer within {limit:g} s"
            streak.note("timeout", reason)
            return Described(source.id, None, reason)

        limit = limits_of(executor, remote=remote).each
        lane = Lane(left, (executor.calls or MOST_CALLS) if remote else 1, limit, on_timeout)
        collect(f"describe {ident}", total, total - len(left), run_in_lanes([lane], work), partial(self._save, ident))
        self._save_calls(ident)
        if streak.stop is not None:
            self.stops[ident] = streak.stop
            log.info(f"{streak.stop}")

    def _limit(self, ident: str, extractor: Extractor) -> None:
        """Make the calls of a model subject to the run's budget and cache."""
        if isinstance(extractor, VLMExtractor):
            model = extractor.model
            note = lambda key, answered: self._calls.put((key, answered))  # noqa: E731
            extractor.words = lambda ask, number: self.asking.words(ident, model, ask, number, note)

    def _save_calls(self, ident: str) -> None:
        """Store the tokens of the calls so far, including calls without a usable description."""
        calls = [self._calls.get() for _ in range(self._calls.qsize())]
        self.store.save_description_calls(ident, [(key, reply.model, reply.tokens) for key, reply in calls])

    def _save(self, ident: str, described: list[Described]) -> None:
        self._save_calls(ident)
        for one in described:
            if one.feature is None:
                self.missing[f"no feature prompt: {one.reason}"] += 1
            elif one.feature.text:
                detail = {**one.feature.dimensions, "flags": list(one.feature.flags)}
                self.store.save_feature(one.source, ident, one.feature.text, detail)
            else:
                reason = ", ".join(one.feature.flags) or "the extractor returned none"
                log.info(f"no feature prompt for {one.source}: {reason}")
