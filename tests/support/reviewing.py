"""A study whose judges are careless, and reviewers who settle its cases."""

from evenedit.cases.review_queue import ReviewQueue
from evenedit.ratings.reviews import Review

CARELESS = {
    "judges": [
        {"id": f"simulated-judge-{n}", "kind": "simulated", "settings": {"seed": n, "error": 0.6}} for n in (1, 2)
    ],
    "prompts": {"include": ["O-01", "V-05", "V-01"]},
}


def settle(queue: ReviewQueue, rater: str, ident: str, note: str = "", **answers: int) -> Review:
    """Settle a case as it stands; questions that must be settled and are not given get a 2."""
    sheet = queue.form(ident, rater)
    needed = sheet.needed or (sheet.questions[0].id,)
    return queue.settle(ident, rater, dict.fromkeys(needed, 2) | answers, note, sheet.version)
