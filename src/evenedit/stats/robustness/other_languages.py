"""The same requests in other languages: how far rates and gaps depend on the language an editor was asked in."""

from __future__ import annotations

from collections.abc import Iterator

from evenedit.core.records import Experiment, language_of
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.table import Scores
from evenedit.results.sensitivities import LanguageDifference
from evenedit.stats.disparity.paired_editors import differences, pair
from evenedit.stats.engine.rules import AnalysisRules

KINDS = (MeasureKind.RATE, MeasureKind.GAP)


def language_differences(scores: Scores, rules: AnalysisRules) -> Iterator[LanguageDifference]:
    """Yield each editor's rates and gaps in another language minus those in the original language.

    Pairs share portrait, prompt and seed. p is Holm's within an editor and language, times the number of these.
    """
    edits = scores.edits[scores.edits["experiment"] == Experiment.DIAGNOSIS]
    arms = edits[["editor", "condition"]].drop_duplicates()
    translated = [(str(e), str(c)) for e, c in arms.itertuples(index=False) if language_of(str(c))]
    for editor, condition in translated:
        for d in differences(pair(scores, scores, editor, editor, condition), rules):
            over_everybody = not d.group or "*" in d.group.values()
            if over_everybody and Measure(d.measure).kind in KINDS:
                p = None if d.p_adjusted is None else min(1.0, d.p_adjusted * len(translated))
                place = language_of(condition), editor, d.measure, d.group
                yield LanguageDifference(*place, d.first, d.second, d.value, d.low, d.high, d.pairs, p)
