"""A frozen set of edits with each judge's answers: asked again later, the judges show whether they changed.

    anchors/anchors.json     the edits, in full: prompt, instruction, labels, hashes of the pictures
    anchors/images/          the pictures
    anchors/replies.jsonl    every reply ever given about them, one line each, only ever appended

The folder needs no study: it can be copied into another study's folder and used with the judges of that study. It
holds portraits and their labels, so protect it like the sources.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenedit.core.errors import EvenEditError, Failed
from evenedit.core.hashing import digest
from evenedit.core.images import ImageFolder, write_whole
from evenedit.core.interfaces import Case, Reply
from evenedit.core.log import log
from evenedit.core.progress import Progress
from evenedit.core.provenance import provenance
from evenedit.core.records import Experiment, Prompt, Status, is_simulated
from evenedit.design import requests as design
from evenedit.design.sampling import greedy_fill
from evenedit.judges.calling import BudgetSpent, checked
from evenedit.judges.raters import JudgeRater
from evenedit.results.judge_checks import AnchorCheck, Answering
from evenedit.run.executors import MOST_CALLS, Lane, run_in_lanes
from evenedit.run.runner import Runner
from evenedit.run.streak import FailureStreak
from evenedit.stats.robustness.anchor_drift import ALPHA, ANSWERED, PERMUTATIONS, Replies, drifts
from evenedit.study.context import StudyContext

SCHEMA = "evenedit.anchors/1"
FOLDER = "anchors"
SIZE = 24
REPEATS = 2
FROZEN = 0
"""The round in which a judge's answers are frozen; later rounds count up from 1."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """One edit of the set, with everything that a judge is shown."""

    images: tuple[str, ...]
    """sha256 of the source."""
    edited: str
    prompt: Prompt
    instruction: str
    attributes: Mapping[str, str]

    @property
    def id(self) -> str:
        """A hash of the pictures, the prompt and the instruction."""
        reported = {name: value for name, value in asdict(self.prompt).items() if name not in ("asks", "asks_for")}
        return digest([self.images, self.edited, reported, self.instruction])


@dataclass(frozen=True, slots=True)
class AnchorAnswer:
    """One reply about one anchor."""

    round: int
    """The round in which it was given; `sitting` in replies.jsonl."""
    judge: str
    revision: str
    anchor: str
    repeat: int
    status: str
    values: Mapping[str, int | None]
    reason: str
    raw: str
    model: str
    at: str

    @classmethod
    def from_json(cls, text: str | bytes) -> AnchorAnswer:
        """Read a line of replies.jsonl."""
        data = json.loads(text)
        return cls(round=data.pop("sitting"), **data)

    def to_json(self) -> str:
        """Return the line of replies.jsonl."""
        data = asdict(self)
        return json.dumps({"sitting": data.pop("round"), **data}, ensure_ascii=False)

    @property
    def key(self) -> tuple[int, str, str, str, int]:
        """The round, judge, anchor and repeat of the call."""
        return self.round, self.judge, self.revision, self.anchor, self.repeat


class AnchorSet:
    """The folder of a frozen set."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images = ImageFolder(folder / "images")
        path = folder / "anchors.json"
        try:
            data = json.loads(path.read_text("utf-8"))
            self.frozen: str = data["frozen"]
            self.repeats: int = data["repeats"]
            self.editors: list[str] = data["editors"]
            self.anchors = tuple(_anchor(a) for a in data["anchors"])
        except FileNotFoundError:
            raise EvenEditError(
                f"there is no anchor set in {folder}. Try: evenedit judges anchors STUDY --freeze"
            ) from None
        except (KeyError, TypeError, ValueError) as error:
            raise EvenEditError(f"{path} cannot be read ({error!r}); restore it from a copy") from None
        damaged = [s for a in self.anchors for s in (*a.images, a.edited) if not self.images.is_whole(s)]
        if damaged:
            raise EvenEditError(
                f"{len(damaged)} pictures of the anchor set in {folder} are missing or changed, e.g. {damaged[0]}.png; "
                "restore them from a copy: answers about other pictures cannot be compared"
            )
        self.lines = {line.key: line for line in self._read()}

    @property
    def _log(self) -> Path:
        return self.folder / "replies.jsonl"

    def _read(self) -> Iterator[AnchorAnswer]:
        if not self._log.exists():
            return
        content = self._log.read_bytes()
        complete = content.rfind(b"\n") + 1
        if complete < len(content):  # a process that was killed left half a line
            with self._log.open("r+b") as file:
                file.truncate(complete)
        for text in content[:complete].splitlines():
            try:
                yield AnchorAnswer.from_json(text)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise EvenEditError(
                    f"{self._log} has a line that cannot be read ({error}); restore it from a copy"
                ) from None

    def append(self, lines: Sequence[AnchorAnswer]) -> None:
        """Append replies to the file; they are on disk when this returns."""
        with self._log.open("ab") as file:
            file.write("".join(line.to_json() + "\n" for line in lines).encode())
            file.flush()
            os.fsync(file.fileno())
        self.lines |= {line.key: line for line in lines}

    def answered(self, judge: JudgeRater, round_number: int) -> list[AnchorAnswer]:
        """Return the replies of a judge in one round; failed calls are no replies."""
        return [
            line
            for line in self.lines.values()
            if (line.round, line.judge, line.revision) == (round_number, judge.id, judge.revision)
            and line.status != Status.FAILED
        ]

    def left(self, judges: Sequence[JudgeRater], round_number: int) -> list[tuple[JudgeRater, Anchor, int]]:
        """Return the calls of a round that are still to be made."""
        done = {line.key for judge in judges for line in self.answered(judge, round_number)}
        return [
            (judge, anchor, repeat)
            for anchor in self.anchors
            for repeat in range(1, self.repeats + 1)
            for judge in judges
            if (round_number, judge.id, judge.revision, anchor.id, repeat) not in done
        ]

    def current_round(self, judges: Sequence[JudgeRater]) -> int:
        """Return the round that is not finished, or else the next one."""
        started = {line.round for line in self.lines.values() if any(_of(line, j) for j in judges)} - {FROZEN}
        last = max(started, default=FROZEN)
        return last if last != FROZEN and self.left(judges, last) else last + 1


def _of(line: AnchorAnswer, judge: JudgeRater) -> bool:
    return (line.judge, line.revision) == (judge.id, judge.revision)


def _anchor(data: Mapping[str, Any]) -> Anchor:
    prompt = Prompt(**data["prompt"] | {"asks": tuple(data["prompt"].get("asks", ()))})
    return Anchor(tuple(data["images"]), data["edited"], prompt, data["instruction"], data["attributes"])


def freeze(study: StudyContext, folder: Path, size: int = SIZE, repeats: int = REPEATS) -> AnchorSet:
    """Choose the anchors and write the set; a set that exists is returned unchanged."""
    if (folder / "anchors.json").exists():
        return AnchorSet(folder)
    store, file = study.store, study.file
    sources, edits = store.sources(), store.edits()
    images = ImageFolder(folder / "images")
    chosen = []
    editors = set()
    for request in _choose(study, size):
        source, edit = sources[request.source_ids[0]], edits[request.id]
        assert edit.image is not None
        prompt = file.prompt(request.prompt_id)
        pictures = [images.put(store.images.open(sha)) for sha in (source.image, edit.image)]
        chosen.append(Anchor((pictures[0],), pictures[1], prompt, prompt.text, source.attributes))
        editors.add(request.editor)
    body = {
        "schema": SCHEMA,
        "frozen": _now(),
        "study": file.sections.study.title,
        "study_hash": file.hash,
        "seed": file.sections.study.seed,
        "editors": sorted(editors),
        "repeats": repeats,
        "anchors": [{"id": a.id, **asdict(a)} for a in chosen],
    }
    write_whole(folder / "anchors.json", (json.dumps(body, indent=1, ensure_ascii=False) + "\n").encode())
    return AnchorSet(folder)


def _choose(study: StudyContext, size: int) -> list[Any]:
    """Choose edits of different faces where possible, balanced over the study's factors, editors and prompts."""
    sources, edits = study.store.sources(), study.store.edits()
    seed = study.file.sections.study.seed
    eligible = [r for r in design.diagnosis(study.file, sources) if r.id in edits and edits[r.id].image is not None]
    if len(eligible) < size:
        raise EvenEditError(f"the anchor set needs {size} edits; the study has {len(eligible)}. Try: --size")
    names = [f.name for f in study.file.factors]
    labelled = [r for r in eligible if all(sources[r.source_ids[0]].attributes.get(name) for name in names)]
    candidates = labelled if len(labelled) >= size else eligible
    rng = np.random.default_rng(seed)
    shuffled = [candidates[at] for at in rng.permutation(len(candidates))]
    one_each = list({r.source_ids[0]: r for r in shuffled}.values())
    pool = one_each if len(one_each) >= size else shuffled
    frame = pd.DataFrame(
        [
            {"source": r.source_ids[0], "prompt": r.prompt_id, "editor": r.editor}
            | {name: sources[r.source_ids[0]].attributes.get(name, "") for name in names}
            for r in pool
        ]
    )
    even_over = [(name,) for name in (*names, "editor", "prompt", "source")]
    return [pool[row] for row in greedy_fill(frame, size, even_over, np.random.default_rng(seed))[0]]


def ask(runner: Runner, anchors: AnchorSet, judges: Sequence[JudgeRater], round_number: int) -> None:
    """Make the remaining calls of a round."""
    todo = anchors.left(judges, round_number)
    executor = runner.file.sections.executor
    runner.open_budgets(judges)
    asking = runner.asking
    streaks = {judge.id: FailureStreak(f"judge '{judge.id}'", executor.max_failures) for judge in judges}

    def work(call: tuple[JudgeRater, Anchor, int]) -> AnchorAnswer | None:
        judge, anchor, repeat = call
        streak = streaks[judge.id]
        questions = runner.file.questions_of(Experiment.DIAGNOSIS, anchor.prompt, anchor.attributes)
        case = Case(
            [anchors.images.open(sha) for sha in anchor.images],
            anchors.images.open(anchor.edited),
            anchor.prompt,
            anchor.instruction,
            anchor.attributes if judge.sees_labels else None,
            repeat=round_number * anchors.repeats + repeat,
            wording=runner.file.judge_prompt,
            observations=runner.file.rubric.observations("pair", [question.id for question in questions]),
        )
        failure = ""
        try:
            if streak.stop is not None:
                return None
            reply = checked(asking.reply(judge.id, judge.judge, case, questions), questions)
        except BudgetSpent:
            return None
        except EvenEditError:
            raise
        except Exception as error:
            reply = Reply(Status.FAILED, reason=f"{type(error).__name__}: {error}")
            failure = error.failure if isinstance(error, Failed) else type(error).__name__
        streak.note(failure, reply.reason)
        return _line(judge, anchor, repeat, round_number, reply)

    lanes: list[Lane[tuple[JudgeRater, Anchor, int], AnchorAnswer | None]] = [
        Lane(
            [one for one in todo if one[0] is judge],
            (executor.calls or MOST_CALLS) if _is_remote(judge) else executor.workers,
        )
        for judge in judges
    ]
    total = len(judges) * len(anchors.anchors) * anchors.repeats
    with runner.store.locked(), Progress("anchors", total, total - len(todo)) as progress:
        for batch in run_in_lanes(lanes, work):
            answers = [line for line in batch if line is not None]
            anchors.append(answers)
            progress.advance(len(answers))
    for stop in (streak.stop for streak in streaks.values() if streak.stop is not None):
        log.info(f"{stop}")
    if runner.budget.calls:
        log.info(f"calls about the anchors: {runner.budget}")


def _is_remote(judge: JudgeRater) -> bool:
    return bool(getattr(judge.judge, "remote", False))


def _line(judge: JudgeRater, anchor: Anchor, repeat: int, round_number: int, reply: Reply) -> AnchorAnswer:
    return AnchorAnswer(
        round=round_number,
        judge=judge.id,
        revision=judge.revision,
        anchor=anchor.id,
        repeat=repeat,
        status=reply.status.value,
        values=dict(reply.values),
        reason=reply.reason,
        raw=reply.raw,
        model=str(reply.origin.get("model", "")),
        at=_now(),
    )


def compare(study: StudyContext, anchors: AnchorSet, judges: Sequence[JudgeRater], round_number: int) -> AnchorCheck:
    """Compare the answers of a round with the frozen ones; the check is also written into the set's folder."""
    wanted = [q for q in study.file.rubric.ordinal if study.file.rubric.in_main_call(q)]
    before = {j.id: _table(anchors, j, FROZEN, wanted) for j in judges}
    after = {j.id: _table(anchors, j, round_number, wanted) for j in judges}
    names = {*anchors.editors, *(j.id for j in judges)}
    check = AnchorCheck(
        provenance=provenance(study=study.file.hash),
        sitting=round_number,
        anchors=len(anchors.anchors),
        repeats=anchors.repeats,
        frozen=anchors.frozen,
        method=f"paired permutation of replies within each anchor, {PERMUTATIONS}; Holm, {ALPHA:g}",
        drifts=tuple(drifts(before, after, (*wanted, ANSWERED), seed=study.file.sections.statistics.seed)),
        models=tuple(
            Answering(j.id, _models(anchors.answered(j, FROZEN)), _models(anchors.answered(j, round_number)))
            for j in judges
        ),
        simulated=tuple(sorted(name for name in names if is_simulated(name))),
    )
    write_whole(anchors.folder / f"check-{round_number:03d}.json", check.to_json().encode())
    return check


def _table(anchors: AnchorSet, judge: JudgeRater, round_number: int, wanted: Sequence[str]) -> Replies:
    """[anchor, reply, question]; the last column is whether the judge answered at all; NaN where it did not."""
    rows = {anchor.id: at for at, anchor in enumerate(anchors.anchors)}
    table = np.full((len(rows), anchors.repeats, len(wanted) + 1), np.nan)
    for line in anchors.answered(judge, round_number):
        for at, question in enumerate(wanted):
            value = line.values.get(question)
            if value is not None:
                table[rows[line.anchor], line.repeat - 1, at] = value
        table[rows[line.anchor], line.repeat - 1, -1] = line.status == Status.SCORED
    return table


def _models(lines: Iterable[AnchorAnswer]) -> dict[str, int]:
    return dict(sorted(Counter(line.model for line in lines if line.model).items()))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
