"""What the blocks of a page find in their folder: studies, scores and pictures, made once for all pages."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

from scripts.draw_pictures import draw_pictures
from tests.support.documents import Shell
from tests.support.fairface_copies import as_folder, rows
from tests.support.paths import ROOT
from tests.support.studies import write_study

EVEN = {"id": "simulated-even"}
LIGHTENING = {"id": "simulated-lightening", "settings": {"rate": 0.9, "groups": {"race": ["Black"]}}}
CHEAP = {"draws": 100, "permutations": 99}


class Fixtures:
    """Makes each fixture when it is first asked for, and copies it into a page's folder."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self.shell = shell
        self.folder = folder
        self.makers: dict[str, Callable[[Path], None]] = {
            "my-study": lambda folder: self._study(folder, "my-study", EVEN, LIGHTENING),
            "before": lambda folder: self._study(folder, "before", EVEN),
            "after": lambda folder: self._study(folder, "after", LIGHTENING),
            "scores": self._scores,
            "scores-by-tone": self._scores_by_tone,
            "pair": self._pair,
            "draw-pictures": lambda folder: self._script(folder, "draw_pictures.py"),
            "fairface": lambda folder: as_folder_of_dots(folder / "fairface"),
        }

    def put(self, name: str, folder: Path) -> None:
        """Copy a fixture into a folder."""
        shutil.copytree(self.made(name), folder, dirs_exist_ok=True)

    def made(self, name: str) -> Path:
        """The folder that holds a fixture."""
        made = self.folder / name
        if not made.exists():
            made.mkdir(parents=True)
            self.makers[name](made)
        return made

    def _study(self, folder: Path, name: str, *editors: dict[str, object]) -> None:
        """A study that has run: eight drawn faces, two prompts."""
        write_study(folder / name, editors=list(editors), statistics=CHEAP)
        self.shell.run(f"evenedit run {name}", folder)

    def _scores(self, folder: Path) -> None:
        """Scores of judges, and ratings by three people."""
        self.put("before", folder / "made")
        self.shell.run("evenedit export made/before --out exported", folder)
        judged = read(folder / "exported/scores.csv")
        write(folder / "scores.csv", judged)
        of_one = [row for row in judged if row["judge"] == "simulated-judge-a"]
        people = [{**row, "rater": f"simulated-person-{n}"} for n in range(3) for row in of_one]
        write(folder / "ratings.csv", [{k: v for k, v in row.items() if k not in ("judge", "kind")} for row in people])

    def _scores_by_tone(self, folder: Path) -> None:
        self.put("scores", folder)
        tones = {"White": "3", "Black": "8"}
        write(folder / "scores.csv", [by_tone(row, tones) for row in read(folder / "scores.csv")])

    def _script(self, folder: Path, name: str) -> None:
        """Copy a script of the repository to its path."""
        (folder / "scripts").mkdir()
        shutil.copy(ROOT / "scripts" / name, folder / "scripts" / name)

    def _pair(self, folder: Path) -> None:
        """A portrait and an edit of it."""
        draw_pictures(folder / "made", editor="simulated-lightening", prompts=["O-01"], seed=1, size=256)
        for made, name in (("portraits/", "portrait.jpg"), ("edited/O-01_", "edited.jpg")):
            shutil.copy(folder / f"made/{made}Black_Male_20s.png", folder / name)


def as_folder_of_dots(folder: Path) -> None:
    """FairFace in form, one picture a cell, all of them dots."""
    as_folder(folder, rows(1), images="fairface-img-margin125-trainval")


def by_tone(row: dict[str, str], tones: dict[str, str]) -> dict[str, str]:
    """A row with other labels than race, gender and age."""
    kept = {key: value for key, value in row.items() if key not in ("race", "gender", "age")}
    return {**kept, "monk": tones[row["race"]], "headwear": "none" if row["gender"] == "Male" else "cap"}


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, table: list[dict[str, str]]) -> None:
    """Write the rows of a table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
