"""EditScore as a judge: a model trained to score edits, asked over a server in the words it was trained on.

It answers one question of the rubric, whether the edit was carried out (`edit_success`). Its own scale is mapped so:

    success 0 … 25  ->  five equal parts: 0 to below 5 is 1, to below 10 is 2, … 20 and more is 5

This is a convention, not a calibration: the parts were not fitted to what people answer. Its second number, how much
else was changed, answers no question of the rubric; it stays in the raw reply, as all its words do. Every other
question stays missing. It is asked only about single portraits, and never for stereotypes or preferences.

The words are EditScore's own and are read from the package of that name as it is installed; none of its code is run.
https://github.com/VectorSpaceLab/EditScore
"""

from __future__ import annotations

import ast
import importlib.util
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.interfaces import Case, Reply
from evenedit.core.records import Question, Status
from evenedit.core.settings import count
from evenedit.judges.openai import OpenAIJudge
from evenedit.judges.parsing import THOUGHT, ModelReply, UnreadableError, find_objects, storable_text
from evenedit.judges.prompt import ModelPrompt, pixels

PARTS = ("_context_no_delimit_reasoning_first", "_prompts_0shot_two_image_edit_rule", "_prompts_0shot_tie_rule_SC")
"""What its question is made of, as the package names it."""
SAMPLING: Mapping[str, Any] = {"top_p": 0.9, "top_k": 20, "seed": 42}
"""How the package itself draws an answer, beside temperature and length."""
LEVELS = 5


class EditScoreJudge(OpenAIJudge):
    """Asks a server that has an EditScore model; sampling as in the package."""

    answers: ClassVar[frozenset[str]] = frozenset({"edit_success"})
    """The questions it answers: it is not asked where none of them is."""

    def __init__(
        self,
        *,
        server: str | None = "vllm",
        structured: bool | str | None = False,
        temperature: float | None = 0.7,
        max_tokens: int | None = 512,
        extra_body: Mapping[str, Any] | None = SAMPLING,
        score_range: int = 25,
        **shared: Any,
    ) -> None:
        super().__init__(
            server=server,
            structured=structured,
            temperature=temperature,
            max_tokens=max_tokens,
            extra_body=extra_body,
            **shared,
        )
        self.score_range = count("score_range", score_range)

    @cached_property
    def question(self) -> str:
        """Its question, in its own words, with a place for the instruction."""
        texts = _texts()
        context, pair, rule = (texts[part] for part in PARTS)
        return "\n".join([context, pair, rule.replace("10", str(self.score_range))])

    @property
    def parameters(self) -> dict[str, Any]:
        """All that shapes an answer beside what is asked."""
        return {**super().parameters, "editscore": digest(self.question), "score_range": self.score_range}

    def missing(self) -> list[str]:
        """List what is needed to use it and not installed."""
        problems = super().missing()
        try:
            _texts()
        except EvenEditError as error:
            problems += error.problems
        return problems

    def render(self, case: Case, questions: Sequence[Question]) -> ModelPrompt:
        """Source and edited picture, then its question with the instruction."""
        if len(case.images) != 1 or case.other is not None or case.edited_first:
            raise EvenEditError(
                "EditScore compares one source with one edit, in this order; it does not support this question"
            )
        images = (pixels(case.images[0], self.image_size), pixels(case.edited, self.image_size))
        return ModelPrompt("", (*images, self.question.replace("<instruction>", case.instruction)), {})

    def read(self, reply: Any) -> ModelReply:
        """Read a raw reply; its number answers the rubric's question."""
        answered = super().read(reply)
        return answered if isinstance(answered.words, Reply) else replace(answered, words=self.mapped(answered.words))

    def mapped(self, text: str) -> str | Reply:
        """Convert the reply to the rubric's format, or state why it cannot be read."""
        try:
            success, reasons = self._read(text)
        except UnreadableError as problem:
            return Reply(Status.UNPARSEABLE, reason=str(problem), raw=storable_text(text))
        level = 1 + min(LEVELS - 1, math.floor(LEVELS * success / self.score_range))
        reply = {"scores": {"edit_success": level}, "evidence_summary": reasons, "editscore": text}
        return json.dumps(reply).replace(THOUGHT, THOUGHT.replace("/", "\\/"))  # inside a text it ends no thoughts

    def _read(self, text: str) -> tuple[float, str]:
        """Its number for the edit's success, and its reasons."""
        first, *others = find_objects(text, ["score"])
        if any(other != first for other in others):
            raise UnreadableError(f"{1 + len(others)} answers that differ")
        scores = first.get("score")
        if not isinstance(scores, list) or len(scores) != 2:
            raise UnreadableError("score is not a list of two numbers")
        if any(type(s) not in (int, float) or not 0 <= s <= self.score_range for s in scores):
            raise UnreadableError(f"score is not two numbers from 0 to {self.score_range}")
        reasons = first.get("reasoning")
        return float(scores[0]), reasons if isinstance(reasons, str) else ""


def _texts() -> dict[str, str]:
    """Read the package's texts by name from its file without running it."""
    needed = EvenEditError(
        "judge kind 'editscore' uses the prompt of the package of that name. Try: pip install --no-deps editscore"
    )
    spec = importlib.util.find_spec("editscore")
    if spec is None or not spec.submodule_search_locations:
        raise needed
    try:
        source = (Path(next(iter(spec.submodule_search_locations))) / "vie_prompts.py").read_text("utf-8")
        assigned = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
        texts = {
            node.targets[0].id: str(node.value.value)
            for node in assigned
            if isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant)
        }
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise EvenEditError(f"the package 'editscore' cannot be read: {error}") from None
    if absent := [part for part in PARTS if part not in texts]:
        raise EvenEditError(
            f"the package 'editscore' has an unexpected format: no {', '.join(absent)}; version 0.2 has them"
        )
    return texts
