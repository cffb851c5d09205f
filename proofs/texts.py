"""The texts of reports over random studies: `python -m proofs texts`.

STUDIES in the environment sets another number of studies.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from proofs.page import Proof, size, table
from proofs.text_designs import design
from proofs.text_paragraphs import check

SEED = 90_000
STUDIES = 200


def run(folder: Path) -> Proof:
    """Every sentence of the texts of many random studies, held against their answers."""
    studies = size("STUDIES", STUDIES)
    wrong: list[str] = []
    sentences, kinds = 0, Counter[str]()
    for seed in range(SEED, SEED + studies):
        made = design(seed)
        problems, read = check(made)
        wrong += problems
        sentences += read
        kinds.update(_kinds(made.table.kinds))
        kinds["several editors"] += made.table.edits["editor"].nunique() > 1
        kinds["factors of one's own"] += made.table.factors[0].name not in ("race",)
        kinds["mitigation"] += (made.table.edits["experiment"] == "mitigation").any()
        kinds["stereotypes"] += (made.table.edits["experiment"] == "stereotype").any()
    rows = [{"studies with": name, "studies": int(n)} for name, n in sorted(kinds.items())]
    return Proof(
        claim="Every sentence of findings, methods paragraph, model card, human-evaluation paragraph and summary is "
        "true of the answers it was made from: a reader that knows neither analysis nor writer reads each sentence, "
        "computes its numbers anew from single answers (intervals and p values are those of results.json), and refuses "
        "a sentence that it does not know.",
        lines=[*table(rows), "", f"Sentences read: {sentences:,}. False or unknown: {len(wrong):,}."],
        seed=SEED,
        counts={"random studies": studies, "sentences": sentences},
        wrong=wrong[:20],
    )


def _kinds(kinds: tuple[str, ...]) -> set[str]:
    words = {"vlm": "judges", "instrument": "instruments", "human": "people"}
    return {words[kind] for kind in kinds} or {"no rater"}
