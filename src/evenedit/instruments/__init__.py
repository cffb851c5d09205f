"""What can be measured in pixels: skin tone, amount and place of change, identity. An instrument is a rater."""

from evenedit.instruments.measure import Measurement, examine, measure
from evenedit.instruments.raters import ChangeInstrument, Instrument, SkinInstrument

__all__ = ["VERSION", "ChangeInstrument", "Instrument", "Measurement", "SkinInstrument", "examine", "measure"]

VERSION = 2
"""Raised whenever the same pair could measure differently: stored measurements of another version are made anew."""
