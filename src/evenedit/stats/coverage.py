"""How every judge's calls ended: a refusal to score one group more than another is a finding, not a gap in data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evenedit.protocol import factor
from evenedit.ratings import NOT_ASKED, STATUSES, RatingTable
from evenedit.records import Experiment, Kind, Status
from evenedit.results import Coverage


def coverage(table: RatingTable) -> Iterator[Coverage]:
    """Calls by state per judge, experiment and editor: over everybody, then over each race."""
    codes = factor("race").codes
    race = table.edits["race"].map({code: at for at, code in enumerate(codes)})
    race_at = race.fillna(len(codes)).to_numpy(np.int64)
    editors = sorted(table.edits["editor"].unique())
    editor_at = table.edits["editor"].map({name: at for at, name in enumerate(editors)}).to_numpy(np.int64)
    experiments = list(Experiment)
    experiment = table.edits["experiment"].map({e.value: at for at, e in enumerate(experiments)})
    shape = (len(experiments), len(editors), len(codes) + 1, len(STATUSES))
    for rater in table.of_kind(Kind.VLM):
        status = table.status[rater].astype(np.int64)
        told = status != NOT_ASKED
        at = np.ravel_multi_index(
            (experiment.to_numpy(np.int64)[told], editor_at[told], race_at[told], status[told]), shape
        )
        tally = np.bincount(at, minlength=int(np.prod(shape))).reshape(shape)
        for e, name in enumerate(experiments):
            for i, editor in enumerate(editors):
                for group, counts in [
                    ({}, tally[e, i].sum(axis=0)),
                    *(({"race": code}, tally[e, i, r]) for r, code in enumerate(codes)),
                ]:
                    if counts.any():
                        ended = {status: int(counts[STATUSES.index(status)]) for status in Status}
                        yield Coverage(
                            rater=table.raters[rater],
                            experiment=name.value,
                            editor=editor,
                            group=group,
                            scored=ended[Status.SCORED],
                            refused=ended[Status.REFUSED],
                            unparseable=ended[Status.UNPARSEABLE],
                            failed=ended[Status.FAILED],
                        )
