"""Evidence cards show pictures and the request, and nothing that tells who is who."""

import csv
import re

from evenedit.reporting.evidence_cards import write_cards
from tests.support.studies import open_study


def test_cards_are_blind_and_the_key_is_apart(tmp_path):
    loaded = open_study(tmp_path / "study")
    loaded.run()
    page, key = write_cards(loaded, tmp_path / "cards", 5)
    with key.open() as file:
        rows = list(csv.DictReader(file))
    assert [r["card"] for r in rows] == list("12345")
    text = re.sub(r'src="data:[^"]*"|<style>.*?</style>', "", page.read_text(), flags=re.DOTALL)
    assert text.count("<section") == 5
    assert "SIMULATED" in text
    words = {r[c] for r in rows for c in ("request_id", "editor", "source_id", "prompt_id")}
    words |= {"Black", "White", "Female", "70plus", "baseline", "simulated-judge-a"}
    assert not [word for word in words if word in text]
    again, _ = write_cards(loaded, tmp_path / "again", 5)
    assert again.read_bytes() == page.read_bytes()
