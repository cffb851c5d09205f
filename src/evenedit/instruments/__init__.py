"""Measurements in pixels: skin tone, amount and place of change, identity, apparent age. An instrument is a rater."""

from evenedit.instruments.as_raters import AgeInstrument, ChangeInstrument, GenderInstrument, Instrument, SkinInstrument
from evenedit.instruments.measure import Measurement, examine, measure

__all__ = [
    "VERSION",
    "AgeInstrument",
    "ChangeInstrument",
    "GenderInstrument",
    "Instrument",
    "Measurement",
    "SkinInstrument",
    "examine",
    "measure",
]

VERSION = 4
"""Raised whenever the same pair could be measured differently: measurements of another version are repeated."""
