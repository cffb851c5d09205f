"""Names of estimates: `rate.race_change`, `gap.race_change`, `mean.skin_tone` and others."""

from __future__ import annotations

from enum import StrEnum


class MeasureKind(StrEnum):
    """The kind of an estimate of a question or a rate."""

    MEAN = "mean"
    """The mean score of a question, or of a reading."""
    RATE = "rate"
    """The share of valid scores that meet a threshold."""
    GAP = "gap"
    """Highest minus lowest rate over the levels of a factor."""
    TREND = "trend"
    """The change of a rate from one level of an ordered factor to the next."""
    DELTA = "delta"
    """The change against the baseline over complete pairs."""
    CONTRAST = "contrast"
    """A group's rate minus the rate of everybody else."""
    SHARE = "share"
    """Of a choice, the share of answers that are one option: `share.headscarf[removed]`."""
    SHIFT = "shift"
    """Of a two-sided question, the share above no change minus the share below: lighter minus darker."""
    TRANSITION = "transition"
    """Of edits of portraits seen as one level, the share seen as another."""
    FLOW = "flow"
    """Between two levels, the edits seen to change one way minus the other way."""
    TOWARD = "toward"
    """The share of edits seen as a level minus the share of their portraits."""
    DESTINATION = "destination"
    """Of edits seen as another level than their portrait, the share seen as this one."""


class Measure(str):
    """The name of an estimate: its kind, a dot, and the question or rate it is about. It is text everywhere outside."""

    __slots__ = ()

    @classmethod
    def of(cls, kind: MeasureKind, name: str) -> Measure:
        """Return the measure of this kind for a question or rate."""
        return cls(f"{kind.value}.{name}")

    @classmethod
    def mean(cls, name: str) -> Measure:
        """Return the mean of a question or reading."""
        return cls.of(MeasureKind.MEAN, name)

    @classmethod
    def rate(cls, name: str) -> Measure:
        """Return the share that meets a threshold."""
        return cls.of(MeasureKind.RATE, name)

    @classmethod
    def gap(cls, name: str) -> Measure:
        """Return the highest minus the lowest rate over groups."""
        return cls.of(MeasureKind.GAP, name)

    @classmethod
    def trend(cls, name: str) -> Measure:
        """Return the change of a rate per level."""
        return cls.of(MeasureKind.TREND, name)

    @classmethod
    def delta(cls, name: str) -> Measure:
        """Return the change against the baseline."""
        return cls.of(MeasureKind.DELTA, name)

    @classmethod
    def contrast(cls, name: str) -> Measure:
        """Return the rate of a group minus that of all others."""
        return cls.of(MeasureKind.CONTRAST, name)

    @classmethod
    def share(cls, column: str, code: str) -> Measure:
        """Return the share of an option among the answers to a choice."""
        return cls.of(MeasureKind.SHARE, f"{column}[{code}]")

    @classmethod
    def shift(cls, name: str) -> Measure:
        """Return the share on one side of no change minus the share on the other."""
        return cls.of(MeasureKind.SHIFT, name)

    @classmethod
    def seen(cls, kind: MeasureKind, factor: str, *levels: str) -> Measure:
        """Return a measure of the levels that pictures are seen as: `flow.race_seen[Indian>White]`."""
        return cls.of(kind, f"{factor}_seen[{'>'.join(levels)}]")

    @property
    def kind(self) -> str:
        """The part before the first dot."""
        return self.partition(".")[0]

    @property
    def name(self) -> str:
        """The part after the first dot: a question, a rate or a reading."""
        return self.partition(".")[2]

    @property
    def option(self) -> tuple[str, str]:
        """Of a share, the question and the option: `share.headscarf[removed]` is about headscarf and removed."""
        question, _, code = self.name.partition("[")
        return question, code.removesuffix("]")

    def to(self, kind: MeasureKind) -> Measure:
        """Return the measure of another kind for the same question or rate."""
        return Measure.of(kind, self.name)
