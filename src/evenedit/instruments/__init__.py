"""Measure skin tone, change, identity and apparent age in pixels."""

from evenedit.instruments.as_raters import (
    AgeInstrument,
    ChangeInstrument,
    GenderInstrument,
    PeopleInstrument,
    SkinInstrument,
)
from evenedit.instruments.interface import Instrument, PairContext, Read
from evenedit.instruments.measure import examine, measure
from evenedit.instruments.measurement import Measurement

__all__ = [
    "VERSION",
    "AgeInstrument",
    "ChangeInstrument",
    "GenderInstrument",
    "Instrument",
    "Measurement",
    "PairContext",
    "PeopleInstrument",
    "Read",
    "SkinInstrument",
    "examine",
    "measure",
]

VERSION = 7
"""Raised whenever the same pair could be measured differently: measurements of another version are repeated."""
