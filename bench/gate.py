"""A gate on results that are there, against the report that wrote them, each as a command of its own."""

import subprocess
import sys
import time
from pathlib import Path

from evenedit import Study

REPEATS = 5
RULE = ("--rule", "gap.race_change[race] <= 0.05")


def seconds(*arguments: object) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "evenedit", *map(str, arguments)], capture_output=True, check=False)
    return time.perf_counter() - started


def run(folder: Path) -> None:
    study = Study.new(folder / "study", template="demo", survey=None, instruments=[])
    print(study.run())
    report = seconds("report", study.folder)
    size = (study.folder / "report" / "results.json").stat().st_size
    gates = sorted(seconds("gate", study.folder / "report" / "results.json", *RULE) for _ in range(REPEATS))
    of_study = seconds("gate", study.folder, *RULE)
    empty = sorted(seconds("--version") for _ in range(REPEATS))[REPEATS // 2]
    middle = gates[REPEATS // 2]
    print(f"report {report:.2f} s, results.json {size / 1e6:.1f} MB")
    print(f"gate on results.json {middle:.2f} s: 1 : {report / middle:.0f}")
    print(f"gate on the study, which checks that nothing changed, {of_study:.2f} s: 1 : {report / of_study:.1f}")
    print(f"evenedit --version {empty:.2f} s")
