"""The words under which a study's judges began."""

from __future__ import annotations

from dataclasses import replace

from evenedit.config.study_file import StudyFile
from evenedit.core import plugins
from evenedit.judges.raters import revision
from evenedit.storage.store import Store


def with_wording(file: StudyFile, store: Store) -> StudyFile:
    """The file of a study with the wording of release 0.2 if a judge has answered under it: one study, one wording.

    A study file that names its rubric or its judges' prompt says itself which one it wants.
    """
    about = file.sections.study
    if about.rubric is not None or about.judge_prompt is not None:
        return file
    former = replace(file, former_wording=True)
    asked = [s for s in file.sections.judges if plugins.is_remote("judges", s.kind)]
    return former if any(store.has_answers(s.id, revision(former, s)) for s in asked) else file
