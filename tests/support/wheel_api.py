"""Uses the installed package from Python, outside any checkout; given a study that has run and a table of pairs."""

import sys
from pathlib import Path

import pandas as pd
from PIL import ImageEnhance

import evenedit as ee


class Brighter:
    """An editor of somebody's own."""

    revision = "1"

    def edit(self, images, instruction, seed):
        return ee.Refusal("no") if seed < 0 else ImageEnhance.Brightness(images[0]).enhance(1.3)


class Judge:
    """A judge of somebody's own."""

    revision = "1"

    def judge(self, case, questions):
        return ee.Reply(ee.Status.SCORED, {question.id: 3 for question in questions})


study, pairs = Path(sys.argv[1]), Path(sys.argv[2])
for name in ee.__all__:
    assert getattr(ee, name) is not None, name
assert "site-packages" in Path(ee.__file__).parts, ee.__file__

table = pd.read_csv(pairs)
measured = ee.measure(table["source"][0], table["edited"][0])
assert "skin_delta_L" in measured.to_json() and "<img" in measured._repr_html_()

made = ee.Study.new(
    "api-study",
    template="small",
    sources={"settings": {"size": 128, "only": {"race": ["White", "Black"], "age": ["20s", "70plus"]}}},
    statistics={"draws": 100, "permutations": 99},
    instruments=[],
)
assert made.plan().edits == 24
summary = made.run(editors={"mine": Brighter()}, judges={"mine": Judge()}, max_cost=20)
assert summary.complete and summary.edited == 24 and not summary.failed + summary.refused + summary.missing, summary
assert made.status().left == 0
results = made.results()
assert made.report("api-report").is_file()
for place in ("api-study", "api-report", "api-report/results.json"):
    loaded = ee.load_results(place)
    assert loaded.estimates == results.estimates
assert ee.Results.from_files(results.to_files().get) == results
assert results.gap("skin_lighter", by="race").value == 0
assert results.estimate("rate.skin_lighter", editor="mine", group={"race": "Black"}).n == 12
assert results.findings and results.summary() and results._repr_html_()
assert len(results.to_frame("estimates")) == len(results.estimates)
assert results.plot.gaps().axes and results.plot.rates(by="race").axes

audited = ee.audit(table, judges={"mine": Judge()}, instruments=["skin"])
assert audited.folder.name == "evenedit-audit-1" and audited.results().editors == ("audited",)

scores = pd.DataFrame(
    [
        {"experiment": "diagnosis", "condition": "baseline", "editor": "mine", "source_id": f"{race}_{n}", "race": race}
        | {"gender": "Female", "age": "20s", "prompt_id": "O-01", "judge": "mine", "status": "scored"}
        | {"edit_success": 5, "skin_tone": 4 if race == "Black" else 3, "race_drift": 1, "gender_drift": 1}
        | {"age_drift": 3}
        for race in ("Black", "White")
        for n in range(6)
    ]
)
assert ee.analyze(scores).gap("skin_lighter", by="race").value == 1
server = made.serve(port=0, background=True)
server.stop()
try:
    ee.Study.new("nothing", template="none such")
except ee.EvenEditError as error:
    assert "small" in str(error) and not Path("nothing").exists()
print("ok")
