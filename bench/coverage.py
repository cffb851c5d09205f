"""What intervals cover and how often tests alarm, in simulated studies: the tables of the validations, at a small size.

STUDIES in the environment sets another number of studies of each world, WORLDS another number of random worlds; SEED
draws studies that nobody has seen.
"""

import os
from importlib import import_module
from pathlib import Path

VALIDATIONS = ("engine", "evidence")
FEW = "20"
"""Studies of each world, enough for a look; `python -m validation` has its own, larger numbers."""


def run(folder: Path) -> None:
    os.environ.setdefault("STUDIES", FEW)
    os.environ.setdefault("WORLDS", FEW)
    for name in VALIDATIONS:
        validation = import_module(f"validation.{name}").run(folder)
        assert validation is not None
        counts = ", ".join(f"{count:,} {what}" for what, count in validation.counts.items())
        refuted = [f"Not shown: {problem}." for problem in validation.wrong]
        print("\n".join([f"\n{name}, seed {validation.seed}, {counts}", *validation.lines, *refuted]), flush=True)
