"""The paper's words for judges and extractors, compared with the paper where its text is at hand."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from evenedit.config.study_file import StudyFile
from evenedit.core.interfaces import Case
from evenedit.judges import prompt as default
from evenedit.judges import published_prompt
from evenedit.judges.feature_prompts import PUBLISHED, label_words
from evenedit.judges.raters import revision
from evenedit.protocol import AXES, load_prompts, questions_for
from evenedit.protocol.rubric import IDENTITY, shipped_rubric

SEEDS = Path(os.environ.get("EVENEDIT_DATA") or Path(__file__).parents[3] / "shared" / "data").parent / "seeds"
BLANK = Image.new("RGB", (8, 8))
LABELS = {"race": "Black", "gender": "Female", "age": "30s"}


def words(text: str) -> str:
    """Letters, digits and signs without the traces of typesetting: one space, one kind of quote, dash and minus."""
    text = re.sub(r"\\geq\s*", "≥", text).replace(r"\pm ", "±").replace(r"\pm", "±")
    text = re.sub(r"\$([^$\n]*)\$", r"\1", text).replace("*", "").translate(str.maketrans("“”’−–—", '""\'---'))
    return re.sub(r"\s+", " ", text).replace("( ", "(")


@pytest.fixture(scope="module")
def paper() -> str:
    found = sorted(SEEDS.glob("003_*.txt"))
    if not found:
        pytest.skip("the paper's text is not here")
    return words(found[0].read_text("utf-8"))


def asked(case: Case, rubric: str = "published") -> str:
    questions = (IDENTITY,) if case.other else questions_for("diagnosis", case.prompt, shipped_rubric(rubric))
    ask = published_prompt.render(case, questions, image_size=64)
    return "\n".join(part for part in ask.parts if isinstance(part, str))


def case(prompt: str = "O-01", **more: object) -> Case:
    found = load_prompts("diagnostic")[prompt]
    return replace(Case([BLANK], BLANK, found, found.text, LABELS), **more)  # type: ignore[arg-type]


def test_every_anchor_stands_in_table_14(paper):
    table = paper[paper.index("## Axis 1-5 Scale Definition") : paper.index("Table 14: Detailed scoring rubrics")]
    for anchors in (q.labels for q in shipped_rubric("published").questions.values() if q.sided != "choice"):
        for number, anchor in enumerate(anchors, 1):
            assert f"- {number}: {words(anchor)}" in table


def test_listing_1_is_sent_line_by_line(paper):
    listing = paper[
        paper.index("Listing 1: VLM evaluation prompt structure") : paper.index("Chain-of-Thought Perceptual Grounding")
    ]
    sent = asked(case())
    assert "SOURCE INFO: Race=Black, Gender=Female, Estimated age=30s" in sent
    for line in ("EDIT INSTRUCTION:", "SOURCE INFO: Race=", "DETAILED OBSERVATION (required before scoring):"):
        assert line in sent and line in listing
    for number, note in enumerate(published_prompt.OBSERVATIONS.values(), 1):
        assert f"1.{number} {note}" in sent and f"1.{number} {note}" in listing
    for axis in AXES:
        assert f'"{axis}": 1-5' in sent and f'"{axis}": 1-5' in listing
    assert sent.index("DETAILED OBSERVATION") < sent.index("SCORING RUBRICS") < sent.index("OUTPUT (JSON):")


def test_listing_2_is_the_papers(paper):
    listing = paper[paper.index("### Listing 2") : paper.index("#### Key Design Choices")]
    bare = re.sub(r"[\s`]", "", listing)
    for line in PUBLISHED.splitlines():
        assert re.sub(r"\s", "", words(line)) in bare, line


def test_table_15s_examples_pass_the_label_filter(paper):
    table = paper[paper.index("Demo. Generated Identity Prompt") : paper.index("Table 15: Example identity prompts")]
    examples = re.findall(r"Maintain the person's [^.]*\.", table)
    assert len(examples) == 3
    for example in examples:
        assert label_words(example) == {}, example


def test_a_mature_person_is_still_an_age():
    assert label_words("a mature person") == {"an age or age group": ["mature"]}


def test_published_judges_are_told_which_output_was_mitigated_and_blind_ones_nothing():
    told = asked(case(mitigated=(True,)))
    assert "made with an identity-preserving Feature Prompt" in told
    assert "Feature Prompt" not in asked(case(mitigated=(False,)))
    assert "SOURCE INFO" not in asked(case(attributes=None))
    both = asked(case(other=BLANK, mitigated=(False, True)))
    assert "Compare Image A (edited) and Image B (preserved)." in both
    assert "Compare Image A and Image B." in asked(case(other=BLANK))


def test_the_aging_prompt_is_asked_for_accuracy_with_its_own_anchors():
    sent = asked(case("V-05"))
    assert "Correct (within ±10 years of target age)" in sent and '"age_drift"' not in sent


def study(**about: str) -> StudyFile:
    body = {
        "study": {"title": "T", **about},
        "sources": {"kind": "drawn"},
        "experiments": {"diagnosis": {}},
        "editors": [{"id": "simulated-even"}],
        "judges": [{"id": "j", "kind": "openai", "settings": {"model": "m"}}],
    }
    return StudyFile.parse(body, Path())


def test_a_judge_has_another_revision_under_other_words():
    chosen = [study(), study(rubric="published"), study(judge_prompt="published"), study(preset="published")]
    revisions = {revision(file, file.sections.judges[0]) for file in chosen}
    assert len(revisions) == 4
    told = study(preset="published")
    same = study(preset="published", rubric="published", judge_prompt="published")
    assert revision(told, told.sections.judges[0]) == revision(same, same.sections.judges[0])


def test_default_words_do_not_depend_on_the_published_ones():
    sent = default.render(case(), questions_for("diagnosis", case().prompt), image_size=64).parts[-1]
    assert "Ambiguous: some of these traits changed" in str(sent)
    assert "Ambiguous—some features changed" not in str(sent)
