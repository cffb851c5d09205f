"""From pictures that somebody has to a study that is measured and rated."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenedit.api.study import Study
from evenedit.core.errors import EvenEditError
from evenedit.core.python_objects import validate_objects
from evenedit.judges.python import PythonJudgeAdapter
from evenedit.protocol import Factor, default_rubric
from evenedit.run.from_images import begin
from evenedit.run.pair_table import PairTable
from evenedit.study.python_plugins import checked_instruments

if TYPE_CHECKING:
    import pandas as pd

    from evenedit.instruments import Instrument

FOLDER = "evenedit-audit"


def audit(
    pairs: str | os.PathLike[str] | pd.DataFrame,
    *,
    editor: str = "audited",
    sources: str | os.PathLike[str] | None = None,
    edited: str | os.PathLike[str] | None = None,
    prompts: str | None = None,
    factors: Sequence[str | Factor] | None = None,
    judges: Mapping[str, Any] | None = None,
    instruments: Sequence[str | Instrument] | None = None,
    out: str | os.PathLike[str] | None = None,
) -> Study:
    """Measure and rate edits that exist, and return the study: `audit("edits.csv").report()`.

    `pairs` is a CSV file or a data frame with a row for each edit: source and edited (paths of pictures), prompt (the
    text, or a known id), and a column for each factor: race, gender and age, or the `factors` named. Further columns
    are optional: prompt_id (a label), asks (axes the prompt asks to change), asks_for (kinds of change it asks for),
    editor and seed where there are several, refused (why there is no picture). Paths are relative to the CSV, or to
    `sources` and `edited`. Ids are those of `prompts`, a prompt set; of the diagnostic and neutral prompts without one.
    `judges` are objects by id, as for `Study.run`; `instruments` measure pixels: kinds of installed ones ("age" and
    "gender" need `evenedit plugins age --setup` once) and objects with an id; all that are installed and set up when
    left out. The study is written to `out`, by default to a new folder evenedit-audit-N here; an
    audit of the same pairs in that folder is resumed.
    """
    study = begin_audit(
        pairs,
        editor=editor,
        sources=sources,
        edited=edited,
        prompts=prompts,
        factors=factors,
        judges=judges,
        instruments=instruments,
        out=out,
    )
    study.run(judges=judges, instruments=_objects(instruments or ()) or None)
    return study


def begin_audit(
    pairs: str | os.PathLike[str] | pd.DataFrame | PairTable,
    *,
    editor: str = "audited",
    sources: str | os.PathLike[str] | None = None,
    edited: str | os.PathLike[str] | None = None,
    prompts: str | None = None,
    factors: Sequence[str | Factor] | None = None,
    judges: Mapping[str, Any] | None = None,
    instruments: Sequence[str | Instrument] | None = None,
    out: str | os.PathLike[str] | None = None,
) -> Study:
    """Write the study of `audit` without running it."""
    for ident, judge in (validate_objects("judge", judges) or {}).items():
        PythonJudgeAdapter(ident, judge)  # refused now rather than after the study is written
    checked_instruments(_objects(instruments or ()) or None, default_rubric())
    if isinstance(factors, str):
        raise EvenEditError(f"factors is the text '{factors}'; give a list: factors=['{factors}']")
    where = Path(out) if out is not None else _new_folder()
    begin(
        Path(pairs) if isinstance(pairs, str | os.PathLike) else pairs,
        where,
        editor=editor,
        sources=None if sources is None else Path(sources),
        edited=None if edited is None else Path(edited),
        prompts=prompts,
        factors=factors,
        instruments=None if instruments is None else [one for one in instruments if isinstance(one, str)],
    )
    return Study.load(where)


def _objects(instruments: Sequence[str | Instrument]) -> dict[str, Instrument]:
    """Return the instruments that are Python objects by their ids."""
    return {str(getattr(one, "id", "")): one for one in instruments if not isinstance(one, str)}


def _new_folder() -> Path:
    """Return the path of a subfolder of this directory that does not exist yet."""
    return next(path for number in count(1) if not (path := Path(f"{FOLDER}-{number}")).exists())
