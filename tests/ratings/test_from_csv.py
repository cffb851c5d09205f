"""Other people's tables are read exactly or refused with the lines to mend."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind, Prompt
from evenedit.protocol import FACTORS, PromptSet
from evenedit.ratings.from_csv import read_tables
from evenedit.ratings.table import NOT_ASKED, QUESTION_IDS, edit_columns
from tests.support.paths import CONFORMANCE

HEADER = "experiment,condition,editor,source_id,race,gender,age,prompt_id,judge,status,"
AXES = "edit_success,skin_tone,race_drift,gender_drift,age_drift"
FACE = "diagnosis,baseline,flux2-dev,White_Male_20s,White,Male,20s"


def write(tmp_path: Path, *rows: str, header: str = HEADER + AXES, name: str = "scores.csv") -> Path:
    path = tmp_path / name
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def problems(*paths: Path) -> list[str]:
    with pytest.raises(EvenEditError) as caught:
        read_tables(paths)
    return list(caught.value.problems)


def test_scores_and_verdicts_merge_into_one_table():
    table = read_tables([CONFORMANCE / "scores.csv", CONFORMANCE / "verdicts.csv"])
    assert table.raters == ("gemini-3-flash-preview", "gpt-5-mini")
    assert table.kinds == (Kind.VLM, Kind.VLM)
    assert tuple(table.edits.columns) == edit_columns(FACTORS)
    assert table.edits["experiment"].value_counts().to_dict() == {
        "diagnosis": 5040,
        "mitigation": 700,
        "stereotype": 100,
    }
    assert table.edits["request_id"].is_unique
    assert (table.edits.loc[table.edits["experiment"] == "stereotype", ["source_id", "race"]] == "").all(axis=None)


def test_the_files_cells_arrive_unchanged():
    table = read_tables([CONFORMANCE / "scores.csv"])
    raw = pd.read_csv(CONFORMANCE / "scores.csv")
    raw = raw[raw["judge"] == "gpt-5-mini"].reset_index(drop=True)
    assert (table.edits["prompt_id"].to_numpy() == raw["prompt_id"].to_numpy()).all()
    for axis in ("edit_success", "skin_tone", "race_drift", "gender_drift"):
        assert np.array_equal(table.values[1][:, QUESTION_IDS.index(axis)], raw[axis].fillna(0).astype(int))
    aged = (raw["prompt_id"] == "V-05").to_numpy()
    age, aging = (table.values[1][:, QUESTION_IDS.index(q)] for q in ("age_drift", "aging_accuracy"))
    assert np.array_equal(age + aging, raw["age_drift"].fillna(0).astype(int))
    assert not age[aged].any()
    assert not aging[~aged].any()


def test_optional_columns_are_understood(tmp_path):
    path = write(
        tmp_path,
        f"{FACE},O-01,Ann,scored,4,3,1,1,3,7,edited,human,r1,x",
        f"{FACE},O-01,gpt-5-mini,scored,4.0,,1,1,3,7,,,r1,x",
        f"{FACE},O-01,gpt-5-mini,scored,5,3,1,1,3,8,,vlm,r2,x",
        f"{FACE},O-02,,,,,,,,7,refused,,,x",
        header=HEADER + AXES + ",seed,outcome,kind,request_id,comment",
    )
    table = read_tables([path])
    assert table.raters == ("gpt-5-mini", "Ann")  # judges before people
    assert table.kinds == (Kind.VLM, Kind.HUMAN)
    assert table.edits["seed"].tolist() == [7, 8, 7]
    assert table.edits["outcome"].tolist() == ["edited", "edited", "refused"]
    assert table.edits["request_id"].tolist()[:2] == ["r1", "r2"]
    assert table.values[0, :, :2].tolist() == [[4, 0], [5, 3], [0, 0]]
    assert table.status[:, 2].tolist() == [NOT_ASKED, NOT_ASKED]


def test_dataset_spellings_and_other_id_forms_are_mapped(tmp_path):
    face = "diagnosis,baseline,e,s1,Latino_Hispanic,female,more than 70"
    table = read_tables([write(tmp_path, f"{face},B04,j,scored,4,3,1,1,3", f"{face},D03,j,scored,4,3,1,1,5")])
    assert table.edits[["race", "gender", "age"]].iloc[0].tolist() == ["Latino", "Female", "70plus"]
    assert table.edits["prompt_id"].tolist() == ["O-06", "V-05"]
    assert table.values[0, 1, QUESTION_IDS.index("aging_accuracy")] == 5


def test_bad_cells_are_listed_with_their_lines(tmp_path):
    found = problems(
        write(
            tmp_path,
            f"{FACE},O-01,j,scored,7,3,1,1,3",
            f"{FACE},O-02,j,scored,3.5,3,1,1,3",
            "",
            f"{FACE},O-03,j,scored,4,much,1,1,3",
            f"{FACE},O-04,j,done,4,3,1,1,3",
            "diagnosis,baseline,e,s9,Martian,Male,20s,O-05,j,scored,4,3,1,1,3",
            "diagnosis,baseline,e,s9,White,Male,12,O-05,j,scored,4,3,1,1,3",
            f"{FACE},O-06,j,failed,4,,,,",
            f"{FACE},O-07,,scored,4,3,1,1,3",
            f"stereotype{FACE[9:]},O-08,j,scored,4,3,1,1,3",
        )
    )
    whole = "expected a whole number from 1 to 5"
    assert found[0] == f"scores.csv line 2: edit_success is '7'; {whole}"
    assert found[1] == f"scores.csv line 3: edit_success is '3.5'; {whole}"
    assert found[2] == f"scores.csv line 5: skin_tone is 'much'; {whole}"
    assert "line 6: status is 'done'; expected one of: scored, refused, unparseable, failed" in found[3]
    assert "line 7: race is 'Martian'; expected one of: White" in found[4]
    assert "line 8: age is '12'" in found[5]
    assert "line 9: edit_success is '4' but the status is 'failed'" in found[6]
    assert "line 10: judge is empty" in found[7]
    assert "line 11: experiment is 'stereotype'; expected one of: diagnosis, mitigation" in found[8]
    assert len(found) == 9


def test_a_judges_preference_stands_however_its_rating_ended_and_nothing_else_does(tmp_path):
    rows = [f"{FACE},O-01,a,unparseable,,,,,,MITIGATED", f"{FACE},O-01,b,,,,,,,SAME"]
    rows = [row.replace("diagnosis,baseline", "mitigation,feature") for row in rows]
    table = read_tables([write(tmp_path, *rows, header=HEADER + AXES + ",preference")])
    assert table.values[:, 0, QUESTION_IDS.index("preference")].tolist() == [2, 3]
    assert [int(code) for code in table.status[:, 0]] == [2, NOT_ASKED]
    scored = rows[1].replace(",,,,,,,SAME", ",,4,3,1,1,3,SAME")
    found = problems(write(tmp_path, scored, header=HEADER + AXES + ",preference"))
    assert "scores.csv line 2: edit_success is '4' but the status is ''" in found


def test_a_long_list_of_bad_rows_is_cut(tmp_path):
    found = problems(write(tmp_path, *(f"{FACE},O-01,j{i},scored,9,3,1,1,3" for i in range(50))))
    assert len(found) == 21
    assert found[-1] == "and 30 more"


def test_duplicate_rows_are_refused_with_both_lines_even_across_files(tmp_path):
    row = f"{FACE},O-01,j,scored,4,3,1,1,3"
    assert problems(write(tmp_path, row, f"{FACE},O-02,j,scored,4,3,1,1,3", row)) == [
        "scores.csv line 4: the same edit and judge as scores.csv line 2"
    ]
    other = write(tmp_path, row, name="more.csv")
    first = write(tmp_path, row)
    assert problems(first, other) == ["more.csv line 2: the same edit and judge as scores.csv line 2"]


def test_contradicting_rows_are_refused(tmp_path):
    black = FACE.replace(",White,", ",Black,")
    found = problems(write(tmp_path, f"{FACE},O-01,j,scored,4,3,1,1,3", f"{black},O-02,j,scored,4,3,1,1,3"))
    assert found == ["scores.csv line 3: race is 'Black' but 'White' on an earlier row of the same source_id"]
    header = HEADER + AXES + ",outcome"
    found = problems(write(tmp_path, f"{FACE},O-01,j,scored,4,3,1,1,3,refused", header=header))
    assert found == ["scores.csv line 2: status is scored but the outcome is refused"]


def test_missing_columns_are_named_beside_those_found(tmp_path):
    found = problems(write(tmp_path, "a,b", header="editor,judge"))
    assert "lacks the columns: experiment, condition" in found[0]
    assert found[1] == "  it has: editor, judge"


def test_two_id_styles_in_one_import_are_refused_with_both_readings(tmp_path):
    found = "\n".join(problems(write(tmp_path, f"{FACE},O-04,j,scored,4,3,1,1,3", f"{FACE},O04,j,scored,4,3,1,1,3")))
    assert "several forms are mixed" in found
    assert "airport security" in found
    assert "kindergarten teacher" in found


def test_a_users_own_prompts_can_be_given(tmp_path):
    path = write(tmp_path, f"{FACE},X-1,j,scored,4,3,1,1,3", f"{FACE},X-2,j,scored,4,3,1,1,2")
    assert "prompt id 'X-1' is not known" in problems(path)[0]
    mine = PromptSet("mine", (Prompt("X-1", "a", "Mine"), Prompt("X-2", "b", "Mine", target_years=10)))
    table = read_tables([path], [mine])
    assert table.values[0, :, QUESTION_IDS.index("aging_accuracy")].tolist() == [0, 2]


def test_a_verdict_must_be_one_of_the_three(tmp_path):
    header = "experiment,condition,editor,prompt_id,judge,status,verdict"
    row = "stereotype,baseline,e,W-01,"
    found = problems(
        write(tmp_path, f"{row}a,scored,MAYBE", f"{row}b,scored,", f"{row}c,refused,", f"{row}d,failed,UNCLEAR",
              header=header)
    )  # fmt: skip
    known = "expected one of: STEREOTYPE_FOLLOWED, STEREOTYPE_RESISTED, UNCLEAR"
    assert found == [
        f"scores.csv line 2: verdict is 'MAYBE'; {known}",
        f"scores.csv line 3: verdict is ''; {known}",
        "scores.csv line 5: verdict is 'UNCLEAR' but the status is 'failed'",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        ((HEADER + AXES + "\n").encode(), "has a header but no rows"),
        ("Rasse,Straße\n".encode("latin-1"), "is not a UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\xff", "is not"),
        ((HEADER + AXES + "\n" + "a," * 40 + "\n").encode(), "line 2 has more fields than the header"),
        ((HEADER + AXES + "\na,b\n" + "a," * 40 + "\n").encode(), "is not a CSV file: "),
        (b'{"not": "a table"}\n', "lacks the columns"),
    ],
)
def test_what_is_no_table_of_scores_gets_one_clear_message(tmp_path, content, message):
    path = tmp_path / "scores.csv"
    path.write_bytes(content)
    assert message in problems(path)[0]


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert "nowhere.csv cannot be read" in problems(tmp_path / "nowhere.csv")[0]
    assert "cannot be read" in problems(tmp_path)[0]
    assert "no file to read" in problems()[0]
