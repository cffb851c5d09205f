"""What intervals cover and how often tests alarm, in simulated studies: the tables of the proofs, at a small size.

STUDIES in the environment sets another number of studies of each world, SEED draws studies that nobody has seen.
"""

import os
from importlib import import_module
from pathlib import Path

PROOFS = ("coverage", "hard_worlds", "few_prompts", "compare")
FEW = "20"
"""Studies of each world, enough for a look; `python -m proofs` has its own, larger numbers."""


def run(folder: Path) -> None:
    os.environ.setdefault("STUDIES", FEW)
    for name in PROOFS:
        proof = import_module(f"proofs.{name}").run(folder)
        assert proof is not None
        counts = ", ".join(f"{count:,} {what}" for what, count in proof.counts.items())
        refuted = [f"Not shown: {problem}." for problem in proof.wrong]
        print("\n".join([f"\n{name}, seed {proof.seed}, {counts}", *proof.lines, *refuted]), flush=True)
