"""Measurements in pixels: skin tone, amount and place of change, identity. An instrument is a rater."""

from evenedit.instruments.as_raters import ChangeInstrument, Instrument, SkinInstrument
from evenedit.instruments.measure import Measurement, examine, measure

__all__ = ["VERSION", "ChangeInstrument", "Instrument", "Measurement", "SkinInstrument", "examine", "measure"]

VERSION = 3
"""Raised whenever the same pair could be measured differently: measurements of another version are repeated."""
