"""What can be measured in pixels: skin tone, amount and place of change, identity. An instrument is a rater."""

from evenedit.instruments.measure import Measurement, examine, measure
from evenedit.instruments.raters import ChangeInstrument, SkinInstrument

__all__ = ["ChangeInstrument", "Measurement", "SkinInstrument", "examine", "measure"]
