"""A run can be watched from beside it: what is committed is seen at the next look, with its pace and what is left."""

from evenedit.operations.watch import watch
from evenedit.providers.budget import Budget
from tests.support.studies import open_study


def test_each_look_shows_what_was_committed_since_and_the_last_one_ends_it(tmp_path, evenedit):
    study = open_study(tmp_path)
    steps = iter([lambda: study.runner(Budget(max_calls=10)).run(), study.run])
    looks = list(watch(open_study(tmp_path), pause=lambda _seconds: next(steps)()))
    assert [(s.planned, s.left, s.rated, s.unrated) for s, _ in looks] == [
        (0, 0, 0, 0),
        (16, 0, 10, 22),
        (16, 0, 32, 0),
    ]
    assert "not started" in str(looks[0][0]) and looks[0][1].startswith("pace: shown after the next refresh")
    assert "ratings/s, 22 left, about" in looks[1][1] and "judge simulated-judge-a" in str(looks[1][0])
    assert "review:" not in str(looks[1][0]), "a look must not cost the run its time"
    for _, text in looks[1:]:
        assert "cost: no call to a service yet" in text
    assert "INTERIM rates at" in looks[1][1] and "do not base decisions on them" in looks[1][1]
    assert "INTERIM" not in looks[2][1] and "  simulated-lightening: were refused by the editor 0.0% (" in looks[2][1]


def test_the_command_ends_when_the_study_is_complete(tmp_path, evenedit_process):
    from tests.support.studies import write_study

    folder = write_study(tmp_path)
    open_study(folder).run()
    done = evenedit_process("status", folder, "--watch")
    assert done.returncode == 0 and "edits: 16 of 16" in done.stdout and "pace:" in done.stdout
