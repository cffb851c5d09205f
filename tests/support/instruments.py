"""Instruments that read a pair outside a study."""

from dataclasses import replace
from typing import Any

from evenedit.instruments import Measurement, PairContext
from evenedit.instruments.picture import Picture
from evenedit.instruments.reading import InstrumentSpec, PairReading, read_pair
from evenedit.protocol.prompts import FLOOR
from evenedit.protocol.rubric import default_rubric
from evenedit.ratings.instruments import UNSEEN


def read_measurement(instrument: Any, measurement: Measurement, target_years: int | None = None) -> PairReading:
    """What a built-in instrument reads of a measurement."""
    context = PairContext.of_measurement(replace(FLOOR, target_years=target_years), "baseline", measurement)
    return read(instrument, UNSEEN, UNSEEN, context)


def read(instrument: Any, source: Picture, edited: Picture, context: PairContext) -> PairReading:
    """What an instrument reads of two pictures, checked."""
    return read_pair(instrument, InstrumentSpec.of(instrument, "mine", default_rubric()), source, edited, context)
