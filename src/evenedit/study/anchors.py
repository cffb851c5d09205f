"""A frozen set of edits and of each judge's answers about them: asked again later, it tells whether a judge changed.

    anchors/anchors.json     the edits, in full: prompt, instruction, labels, hashes of the pictures
    anchors/images/          the pictures
    anchors/replies.jsonl    every reply ever given about them, one line each, only ever appended

The folder needs no study: copied into another study's folder it goes on there, with the judges of that study. It
holds portraits and their labels, so keep it as you keep the sources.
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

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.images import ImageFolder, write_whole
from evenedit.core.interfaces import Case, Reply
from evenedit.core.progress import Progress, say
from evenedit.core.provenance import provenance
from evenedit.core.records import Experiment, Outcome, Prompt, Question, Status, is_simulated
from evenedit.design import requests as design
from evenedit.design.sampling import balanced
from evenedit.judges.asking import answer
from evenedit.judges.raters import JudgeRater
from evenedit.protocol import FACTORS, questions_for
from evenedit.results.judge_checks import AnchorCheck, Answering
from evenedit.run.executors import in_threads
from evenedit.run.runner import Runner
from evenedit.stats.engine.measures import AXIS_QUESTIONS
from evenedit.stats.robustness.anchor_drift import ALPHA, ANSWERED, PERMUTATIONS, Replies, drifts
from evenedit.study.study import Study

SCHEMA = "evenedit.anchors/1"
FOLDER = "anchors"
SIZE = 24
REPEATS = 2
FROZEN = 0
"""The sitting in which a judge's answers are frozen; later ones count up."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """One edit of the set, with all that a judge is told about it."""

    images: tuple[str, ...]
    """sha256 of the source."""
    edited: str
    prompt: Prompt
    instruction: str
    attributes: Mapping[str, str]

    @property
    def id(self) -> str:
        """Names the pictures and the question together."""
        return digest([self.images, self.edited, asdict(self.prompt), self.instruction])

    @property
    def questions(self) -> tuple[Question, ...]:
        """What is asked about it."""
        return questions_for(Experiment.DIAGNOSIS, self.prompt)


@dataclass(frozen=True, slots=True)
class AnchorAnswer:
    """One reply about one anchor."""

    sitting: int
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

    @property
    def key(self) -> tuple[int, str, str, str, int]:
        """What was asked of whom."""
        return self.sitting, self.judge, self.revision, self.anchor, self.repeat


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
        whole = content.rfind(b"\n") + 1
        if whole < len(content):  # a killed process wrote half a line
            with self._log.open("r+b") as file:
                file.truncate(whole)
        for text in content[:whole].splitlines():
            try:
                yield AnchorAnswer(**json.loads(text))
            except (TypeError, ValueError) as error:
                raise EvenEditError(
                    f"{self._log} has a line that cannot be read ({error}); restore it from a copy"
                ) from None

    def append(self, lines: Sequence[AnchorAnswer]) -> None:
        """Keep replies, safe from a kill once this returns."""
        with self._log.open("ab") as file:
            file.write("".join(json.dumps(asdict(line), ensure_ascii=False) + "\n" for line in lines).encode())
            file.flush()
            os.fsync(file.fileno())
        self.lines |= {line.key: line for line in lines}

    def answered(self, judge: JudgeRater, sitting: int) -> list[AnchorAnswer]:
        """The replies of a judge in one sitting; failed calls are no replies."""
        return [
            line
            for line in self.lines.values()
            if (line.sitting, line.judge, line.revision) == (sitting, judge.id, judge.revision)
            and line.status != Status.FAILED
        ]

    def left(self, judges: Sequence[JudgeRater], sitting: int) -> list[tuple[JudgeRater, Anchor, int]]:
        """What is still to be asked in a sitting."""
        done = {line.key for judge in judges for line in self.answered(judge, sitting)}
        return [
            (judge, anchor, repeat)
            for anchor in self.anchors
            for repeat in range(1, self.repeats + 1)
            for judge in judges
            if (sitting, judge.id, judge.revision, anchor.id, repeat) not in done
        ]

    def sitting(self, judges: Sequence[JudgeRater]) -> int:
        """The sitting that is under way, or the next one."""
        begun = {line.sitting for line in self.lines.values() if any(_of(line, j) for j in judges)} - {FROZEN}
        last = max(begun, default=FROZEN)
        return last if last != FROZEN and self.left(judges, last) else last + 1


def _of(line: AnchorAnswer, judge: JudgeRater) -> bool:
    return (line.judge, line.revision) == (judge.id, judge.revision)


def _anchor(data: Mapping[str, Any]) -> Anchor:
    return Anchor(
        tuple(data["images"]), data["edited"], Prompt(**data["prompt"]), data["instruction"], data["attributes"]
    )


def freeze(study: Study, folder: Path, size: int = SIZE, repeats: int = REPEATS) -> AnchorSet:
    """Choose a set and write it down; one that is there stays as it is."""
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
        chosen.append(Anchor((pictures[0],), pictures[1], prompt, prompt.text, dict(source.attributes)))
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


def _choose(study: Study, size: int) -> list[Any]:
    """Edits of as many different faces as there are, balanced over groups, editors and prompts, drawn by the seed."""
    sources, edits = study.store.sources(), study.store.edits()
    seed = study.file.sections.study.seed
    eligible = [
        r for r in design.diagnosis(study.file, sources) if r.id in edits and edits[r.id].outcome is Outcome.EDITED
    ]
    if len(eligible) < size:
        raise EvenEditError(f"an anchor set of {size} edits was asked for; the study has {len(eligible)}. Try: --size")
    rng = np.random.default_rng(seed)
    shuffled = [eligible[at] for at in rng.permutation(len(eligible))]
    one_each = list({r.source_ids[0]: r for r in shuffled}.values())
    pool = one_each if len(one_each) >= size else shuffled
    frame = pd.DataFrame(
        [
            {"all": "", "source": r.source_ids[0], "prompt": r.prompt_id, "editor": r.editor}
            | {f.name: sources[r.source_ids[0]].attributes.get(f.name, "") for f in FACTORS}
            for r in pool
        ]
    )
    factors = (*(f.name for f in FACTORS), "editor", "prompt", "source")
    rows, _ = balanced(frame, size, within="all", factors=factors, seed=seed)
    return [pool[row] for row in rows]


def ask(runner: Runner, anchors: AnchorSet, judges: Sequence[JudgeRater], sitting: int) -> None:
    """Make the calls of a sitting that are still to be made."""
    todo = anchors.left(judges, sitting)
    executor = runner.file.sections.executor
    runner.watch(judges)

    def work(asked: tuple[JudgeRater, Anchor, int]) -> AnchorAnswer:
        judge, anchor, repeat = asked
        case = Case(
            [anchors.images.open(sha) for sha in anchor.images],
            anchors.images.open(anchor.edited),
            anchor.prompt,
            anchor.instruction,
            anchor.attributes if judge.sees_labels else None,
            repeat=sitting * anchors.repeats + repeat,
        )
        return _line(judge, anchor, repeat, sitting, answer(judge.judge, case, anchor.questions, executor.retries))

    total = len(judges) * len(anchors.anchors) * anchors.repeats
    with runner.store.locked(), Progress("anchors", total, total - len(todo)) as progress:
        for batch in in_threads(runner.budget.admit(todo), work, executor.workers):
            anchors.append(batch)
            progress.advance(len(batch))
    if runner.budget.calls:
        say(f"calls about the anchors: {runner.budget}")


def _line(judge: JudgeRater, anchor: Anchor, repeat: int, sitting: int, reply: Reply) -> AnchorAnswer:
    return AnchorAnswer(
        sitting=sitting,
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


def compare(study: Study, anchors: AnchorSet, judges: Sequence[JudgeRater], sitting: int) -> AnchorCheck:
    """Answers of a sitting beside the frozen ones; kept in the set's folder as well."""
    before = {j.id: _table(anchors, j, FROZEN) for j in judges}
    after = {j.id: _table(anchors, j, sitting) for j in judges}
    names = {*anchors.editors, *(j.id for j in judges)}
    found = AnchorCheck(
        provenance=provenance(study=study.file.hash),
        sitting=sitting,
        anchors=len(anchors.anchors),
        repeats=anchors.repeats,
        frozen=anchors.frozen,
        method=f"paired permutation of replies within each anchor, {PERMUTATIONS}; Holm, {ALPHA:g}",
        drifts=tuple(drifts(before, after, (*AXIS_QUESTIONS, ANSWERED), seed=study.file.sections.statistics.seed)),
        models=tuple(
            Answering(j.id, _models(anchors.answered(j, FROZEN)), _models(anchors.answered(j, sitting))) for j in judges
        ),
        simulated=tuple(sorted(name for name in names if is_simulated(name))),
    )
    write_whole(anchors.folder / f"check-{sitting:03d}.json", found.to_json().encode())
    return found


def _table(anchors: AnchorSet, judge: JudgeRater, sitting: int) -> Replies:
    """[anchor, reply, question], the last question being whether it answered at all; NaN where there is no answer."""
    rows = {anchor.id: at for at, anchor in enumerate(anchors.anchors)}
    table = np.full((len(rows), anchors.repeats, len(AXIS_QUESTIONS) + 1), np.nan)
    for line in anchors.answered(judge, sitting):
        for at, question in enumerate(AXIS_QUESTIONS):
            value = line.values.get(question)
            if value is not None:
                table[rows[line.anchor], line.repeat - 1, at] = value
        table[rows[line.anchor], line.repeat - 1, -1] = line.status == Status.SCORED
    return table


def _models(lines: Iterable[AnchorAnswer]) -> dict[str, int]:
    return dict(sorted(Counter(line.model for line in lines if line.model).items()))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
