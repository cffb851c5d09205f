"""What a judge is shown and told in each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from PIL import ImageOps
from PIL.Image import Image

from evenedit.config.study_file import StudyFile
from evenedit.core.interfaces import Case
from evenedit.core.records import ConditionKind, Prompt, Request, Source
from evenedit.design.assignments import Assignment
from evenedit.instruments.face import NoFace, find_face
from evenedit.judges.calling import UnshownError
from evenedit.judges.raters import Call

MARGIN = 0.4
"""Around a face that is shown alone, as a share of its width and height."""


def source_ids(request: Request) -> tuple[str, ...]:
    """Return the portraits in the order of the judges: it is one order, whichever the editor was given."""
    return request.source_ids[::-1] if request.condition.other_order else request.source_ids


def case_of(
    file: StudyFile,
    assignment: Assignment,
    request: Request,
    sources: Mapping[str, Source],
    images: Sequence[Image],
    outputs: Sequence[Image],
) -> Case:
    """Return the case about an edit, or about an edit and its baseline; `outputs` are in the order they are shown."""
    prompt = file.prompt(request.prompt_id)
    sees_labels = assignment.rater.sees_labels
    about = "outputs" if assignment.baseline else "people" if len(request.source_ids) > 1 else "pair"
    call = "separate" if assignment.call is Call.SEPARATE else "main"
    case = Case(
        images,
        outputs[0],
        prompt,
        prompt.swapped_text if request.condition.other_pronoun and prompt.swapped_text else prompt.text,
        sources[source_ids(request)[0]].labels if sees_labels else None,
        outputs[1] if len(outputs) > 1 else None,
        wording="default" if assignment.call is Call.SEPARATE else file.judge_prompt,
        mitigated=_mitigated(assignment, request) if sees_labels else None,
        observations=file.rubric.observations(about, [question.id for question in assignment.questions], call),
    )
    return assignment.rater.transform(case)


def single_picture(file: StudyFile, call: Call, image: Image) -> Case:
    """Return the case about one picture, shown alone: nothing tells a source from an output."""
    if file.sections.study.direction_shows == "face":
        image = _face(image)
    image = ImageOps.mirror(image) if call is Call.REREAD else image
    return Case((), image, Prompt("", "", ""), "", wording="seen")


def _mitigated(assignment: Assignment, request: Request) -> tuple[bool, ...]:
    """Return which of the outputs were made with the feature prompt."""
    mitigated = request.condition.kind is ConditionKind.FEATURE
    if assignment.baseline is None:
        return (mitigated,)
    return (False, mitigated) if assignment.call is Call.BASELINE_FIRST else (mitigated, False)


def _face(image: Image) -> Image:
    """Return the part of a picture that shows its face, with a margin; raise UnshownError if it has none to show."""
    face = find_face(np.asarray(image.convert("RGB")))
    if isinstance(face, NoFace):
        raise UnshownError(f"no face to show: {face.reason}")
    left, top, width, height = face.box
    right, bottom = left + width, top + height
    across, down = MARGIN * width, MARGIN * height
    return image.crop(
        (max(0, left - across), max(0, top - down), min(image.width, right + across), min(image.height, bottom + down))
    )
