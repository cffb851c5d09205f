"""The cases of the mitigation: drawn once, and kept."""

from copy import deepcopy

from evenedit.api.study import Study
from evenedit.design.requests import diagnosis
from evenedit.design.study_design import MITIGATION_DRAWN
from tests.support.studies import open_study
from tests.support.surveys import STUDY, make_study


def chosen(study: Study, *, keep: bool = False) -> list[str]:
    sources = study.store.sources()
    cases = study.design.mitigation_cases(diagnosis(study.file, sources), sources, keep=keep)
    return sorted(case.id for case in cases)


def test_a_stored_sample_stays_until_the_study_asks_for_another(tmp_path):
    make_study(tmp_path)
    study = open_study(tmp_path, **STUDY)
    first = study.store.cases("mitigation")
    assert chosen(study) == sorted(first) and set(first.values()) == {0.5}
    sources = study.store.sources()
    others = [r.id for r in diagnosis(study.file, sources) if r.id not in first]
    study.store.forget_cases("mitigation")
    study.store.save_cases("mitigation", dict.fromkeys(others, 0.5))
    assert chosen(study) == sorted(others), "however it was drawn"
    assert study.store.fact(MITIGATION_DRAWN)

    fewer = deepcopy(STUDY)
    fewer["experiments"]["mitigation"]["cases"] = 8
    changed = open_study(tmp_path, **fewer)
    assert len(chosen(changed)) == 8
    assert len(changed.store.cases("mitigation")) == 16, "looking changes nothing"
    assert chosen(changed, keep=True) == sorted(changed.store.cases("mitigation"))
    assert set(changed.store.cases("mitigation").values()) == {0.25}
