"""A study's report, and one of ten times as many edits: seconds, peak memory and size, each in a process of its own.

First without the pictures of its cases, as reports were before every number led to them; then with small ones, which
the first such report makes and the second finds.
"""

import json
import subprocess
import sys
from pathlib import Path

from evenedit.api.study import Study
from evenedit.config.study_file import StudyFile

EDITORS = ("simulated-even", "simulated-lightening", "simulated-replacing")
MADE = ("made", "there already")
ALONE = """
import json, resource, sys, time
from evenedit import Study
started = time.perf_counter()
page = Study.load(sys.argv[1]).report(pictures=sys.argv[2])
peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
whole = sum(file.stat().st_size for file in page.parent.rglob("*") if file.is_file())
print(json.dumps([time.perf_counter() - started, peak, page.stat().st_size / 1e6, whole / 1e6]))
"""


def study(prompts: int) -> str:
    ids = [f"{letter}-{n:02}" for letter in "OV" for n in range(1, 11)][:prompts]
    editors = "".join(f'[[editors]]\nid = "{name}"\n' for name in EDITORS)
    judges = "".join(f'[[judges]]\nid = "simulated-judge-{n}"\nkind = "simulated"\n' for n in "ab")
    return (
        f'[study]\ntitle = "Benchmark"\n[sources]\nkind = "drawn"\nsettings = {{ size = 256 }}\n'
        f"[prompts]\ninclude = {json.dumps(ids)}\n[experiments.diagnosis]\n{editors}{judges}[executor]\nprocesses = 2\n"
    )


def run(folder: Path) -> None:
    found = {}
    for prompts, edits in ((2, 504), (20, 5_040)):
        here = folder / str(edits)
        here.mkdir()
        (here / "study.toml").write_text(study(prompts))
        Study.of(StudyFile.load(here)).run()
        for pictures, what in (("none", "no pictures"), *(("thumbnails", f"small pictures {x}") for x in MADE)):
            command = [sys.executable, "-c", ALONE, str(here), pictures]
            made = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds, peak, page, whole = found[edits] = json.loads(made.stdout.splitlines()[-1])
            print(
                f"report of {edits:,} edits, {what}: {seconds:.1f} s, peak memory {peak:.0f} MB, "
                f"report.html {page:.1f} MB, the whole folder {whole:.1f} MB",
                flush=True,
            )
    few, many = found[504], found[5_040]
    print(f"growth for ten times the edits: seconds {many[0] / few[0]:.2f}, peak memory {many[1] / few[1]:.2f}")
