"""EvenEdit shows whether an image editor treats every face the same.

sources ─▶ requests ─▶ edits ─▶ ratings (VLM · instrument · human) ─▶ ensemble ─▶ estimates ─▶ report
"""

__version__ = "0.1.0"
