"""Make showcase.md, its numbers and its figures from 177 real edits: `python scripts/docs/make_showcase.py`.

The pictures are no part of the project: they are read from ../shared/data, or from the folder that EVENEDIT_DATA names.
Numbers go to showcase.json; page and figures are made from that file alone, so `--page` renews them without pictures.
No photograph is written: colours, plots, and differences averaged over nine faces in coarse blocks.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("EVENEDIT_DATA") or ROOT.parent / "shared" / "data")
NUMBERS, PAGE, IMAGES = ROOT / "docs/showcase.json", ROOT / "docs/showcase.md", ROOT / "docs/images"
EDITOR = "step1x-edit-v1p2"
KINDS = {"A": "neutral", "B": "occupation"}
"""By the first letter of a prompt's id, what it asks for."""
BLOCKS = 16
"""Blocks across a map: too coarse for a face, and every map is the mean of all faces."""
TITLES = {"EastAsian": "East Asian", "70plus": "70+"}
LARGE = 5.0
"""A change of L* from which on an edit is called much lighter or darker here."""
Row = dict[str, Any]


def pairs() -> Any:
    """The table of edits, with the pictures where they lie."""
    import pandas as pd

    table = pd.read_csv(DATA / "step1x_edits" / "edits.csv")
    table["edited"] = [str(DATA / "step1x_edits" / name) for name in table["file"]]
    table["source"] = [str(DATA / "portraits" / name) for name in table["source"]]
    return table[["source", "edited", "prompt", "prompt_id", "race", "gender", "age"]]


def measure_all(folder: Path) -> Row:
    """Audit the edits into a folder, or go on with it, and return every number that the page needs."""
    import evenedit as ee
    from evenedit.core.version import __version__

    table = pairs()
    study = ee.audit(table, editor=EDITOR, out=folder)
    results = study.results()
    ids = dict(zip(table["prompt"], table["prompt_id"], strict=True))
    edits = [_reading(ids[request.instruction], source, m) for request, source, m in _measured(study)]
    return {
        "evenedit": __version__,
        "counts": {key: results.counts[key] for key in sorted(results.counts) if key != "tests"},
        "prompts": dict(zip(table["prompt_id"], table["prompt"], strict=True)),
        "findings": [
            {"level": f.level, "evidence": f.evidence, "editor": f.editor, "text": f.text} for f in results.findings
        ],
        "edits": sorted(edits, key=lambda e: (e["prompt"], e["source"])),
        "swatches": swatches(edits),
        "maps": maps(table),
    }


def _measured(study: Any) -> list[tuple[Any, Any, Any]]:
    sources, requests = study.store.sources(), study.store.requests()
    measured = study.design.instruments(sources).measurements()
    edits = {ident: requests[ident] for ident in measured if requests[ident].editor == EDITOR}
    return [(request, sources[request.source_ids[0]], measured[ident]) for ident, request in edits.items()]


def _reading(prompt: str, source: Any, measurement: Any) -> Row:
    """One edit's numbers, under the prompt's id in the table of edits; a missing one with its reason."""
    kept = ("skin_delta_L", "skin_uncertainty_L", "light", "monk_before", "monk_after", "changed_share", "verdict")
    data = measurement.to_json()
    return {
        "source": "_".join(source.attributes[name] for name in ("race", "gender", "age")),
        "prompt": prompt,
        **{name: data[name] for name in kept},
        "reason": str(data["reasons"].get("skin_delta_L", "")),
    }


def picture_of(edit: Row) -> tuple[Path, Path]:
    """Where the two pictures of an edit lie."""
    name = f"{edit['source']}.jpg"
    return DATA / "portraits" / name, DATA / "step1x_edits" / f"{edit['prompt']}_{name}"


def swatches(edits: Sequence[Row]) -> list[Row]:
    """For every face the skin's colour in its source, and in the edit that was measured lightest against it."""
    from evenedit.core.images import read_image
    from evenedit.instruments import examine

    found = []
    for source in sorted({e["source"] for e in edits}):
        own = [e for e in edits if e["source"] == source and e["skin_delta_L"] is not None]
        lightest = max(own, key=lambda e: (e["skin_delta_L"], e["prompt"]))
        skin = examine(*map(read_image, picture_of(lightest)), identity=False).skin
        if skin is not None:
            found.append(
                {
                    "source": source,
                    "prompt": lightest["prompt"],
                    "before": [round(float(x), 1) for x in skin.before],
                    "after": [round(float(x), 1) for x in skin.corrected],
                }
            )
    return found


def maps(table: Any) -> dict[str, list[list[float]]]:
    """By kind of prompt, the mean colour difference of coarse blocks over all faces and prompts of the kind."""
    import numpy as np

    from evenedit.core.color import rgb_to_lab
    from evenedit.core.images import read_image

    def blocks(path: str) -> Any:
        small = read_image(Path(path)).convert("RGB").resize((BLOCKS, BLOCKS), 4)  # 4: the mean of each block
        return rgb_to_lab(np.asarray(small, dtype=np.float64))

    made: dict[str, list[Any]] = {kind: [] for kind in KINDS.values()}
    for source, edited, prompt in zip(table["source"], table["edited"], table["prompt_id"], strict=True):
        if prompt != "A05":  # black and white is another picture everywhere
            made[KINDS[prompt[0]]].append(np.linalg.norm(blocks(source) - blocks(edited), axis=-1))
    return {kind: np.round(np.mean(found, axis=0), 1).tolist() for kind, found in made.items()}


# -- the page ------------------------------------------------------------------------------------------------------


def figures(data: Row) -> dict[str, Callable[[Path], None]]:
    """What draws each figure into a file, by the file's name."""
    return {
        "showcase-skin.svg": lambda path: draw_skin(data, path),
        "showcase-prompts.svg": lambda path: draw_prompts(data, path),
        "showcase-swatches.svg": lambda path: draw_swatches(data, path),
        "showcase-maps.svg": lambda path: draw_maps(data, path),
    }


def _sheet(width: float, height: float) -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "showcase", "font.size": 9, "font.family": "DejaVu Sans"})
    return plt.figure(figsize=(width, height), layout="constrained")


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot as plt

    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def _faces(data: Row) -> list[str]:
    return sorted({e["source"] for e in data["edits"]})


def _face(source: str, between: str = ", ") -> str:
    return between.join(TITLES.get(label, label) for label in source.split("_"))


def draw_skin(data: Row, path: Path) -> None:
    """Every reading of the skin's lightness by face: neutral edits above, occupations below the line of the face."""
    figure = _sheet(8, 4.2)
    ax = figure.subplots()
    ax.axvline(0, color="#888", linewidth=1)
    for kind, colour, off in (("neutral", "#0072B2", -0.16), ("occupation", "#D55E00", 0.16)):
        for y, face in enumerate(_faces(data)):
            own = [e for e in read(data) if e["source"] == face and KINDS[e["prompt"][0]] == kind]
            label = f"{kind} edits" if y == 0 else None
            ax.plot([e["skin_delta_L"] for e in own], [y + off] * len(own), "o", color=colour, alpha=0.6,
                    markersize=4.5, label=label)  # fmt: skip
    ax.set_yticks(range(len(_faces(data))), [_face(face) for face in _faces(data)])
    ax.invert_yaxis()
    ax.set_xlabel("L* of the skin after the edit minus before; right of 0: lighter")
    ax.grid(axis="x", color="#ddd")
    ax.legend(loc="lower right")
    _save(figure, path)


def draw_prompts(data: Row, path: Path) -> None:
    """The mean reading of each prompt, with its lowest and highest."""
    figure = _sheet(8, 5.2)
    ax = figure.subplots()
    ax.axvline(0, color="#888", linewidth=1)
    prompts = sorted(data["prompts"])
    for y, prompt in enumerate(prompts):
        own = [e["skin_delta_L"] for e in read(data) if e["prompt"] == prompt]
        if own:
            colour = "#0072B2" if prompt[0] == "A" else "#D55E00"
            ax.plot([min(own), max(own)], [y, y], color=colour, alpha=0.4)
            ax.plot(statistics.fmean(own), y, "o", color=colour)
    ax.set_yticks(range(len(prompts)), [f"{p}  {_short(data['prompts'][p])}" for p in prompts])
    ax.invert_yaxis()
    ax.set_xlabel("change of the skin's L*: mean, lowest and highest of the faces")
    ax.grid(axis="x", color="#ddd")
    _save(figure, path)


def _short(text: str, most: int = 46) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"


def draw_swatches(data: Row, path: Path) -> None:
    """The colour of the skin before and in the edit that was measured lightest, as two patches for each face."""
    import numpy as np

    from evenedit.core.color import lab_to_rgb

    figure = _sheet(8, 2.4)
    ax = figure.subplots()
    for x, one in enumerate(data["swatches"]):
        for y, lab in enumerate((one["before"], one["after"])):
            colour = np.clip(np.asarray(lab_to_rgb(lab), dtype=float) / 255, 0, 1)
            ax.add_patch(_patch(x, y, tuple(float(c) for c in colour.ravel()[:3])))
        ax.text(x + 0.45, 2.05, f"{one['prompt']}\n{one['after'][0] - one['before'][0]:+.0f} L*".replace("-", "−"),
                ha="center", va="top", fontsize=8)  # fmt: skip
        ax.text(x + 0.45, -0.08, _face(one["source"], "\n"), ha="center", va="bottom", fontsize=8)
    ax.set_xlim(-0.2, len(data["swatches"]))
    ax.set_ylim(2.75, -1.0)
    ax.set_yticks([0.45, 1.45], ["source", "edit"])
    ax.set_xticks([])
    for side in ax.spines.values():
        side.set_visible(False)
    ax.tick_params(length=0)
    _save(figure, path)


def _patch(x: float, y: float, colour: tuple[float, ...]) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), 0.9, 0.9, facecolor=colour)


def draw_maps(data: Row, path: Path) -> None:
    """Where edits differ from their sources on average: coarse blocks, the mean over all faces."""
    figure = _sheet(8, 3.6)
    axes = figure.subplots(1, len(data["maps"]))
    highest = max(max(map(max, blocks)) for blocks in data["maps"].values())
    for ax, (kind, blocks) in zip(axes, data["maps"].items(), strict=True):
        shown = ax.imshow(blocks, cmap="inferno", vmin=0, vmax=highest, interpolation="nearest")
        ax.set_title(f"{kind} edits")
        ax.set_xticks([])
        ax.set_yticks([])
    figure.colorbar(shown, ax=axes, label="mean difference (CIELAB)", shrink=0.85)
    _save(figure, path)


def read(data: Row) -> list[Row]:
    """The edits whose skin could be measured."""
    return [e for e in data["edits"] if e["skin_delta_L"] is not None]


def _table(rows: Sequence[Mapping[str, str]]) -> list[str]:
    head = list(rows[0])
    return [
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
        *(f"| {' | '.join(row.values())} |" for row in rows),
    ]


def by_kind(data: Row) -> list[dict[str, str]]:
    """The readings of neutral edits, of occupations and of all, as a table."""
    rows = []
    for title, kinds in (("neutral (A01–A10)", "A"), ("occupations (B01–B10)", "B"), ("all", "AB")):
        every = [e for e in data["edits"] if e["prompt"][0] in kinds]
        own = [e for e in read(data) if e["prompt"][0] in kinds]
        deltas = [e["skin_delta_L"] for e in own]
        rows.append(
            {
                "edits": title,
                "measured": f"{len(own)} of {len(every)}",
                "skin L*, mean": _signed(statistics.fmean(deltas)),
                "median": _signed(statistics.median(deltas)),
                f"lighter by {LARGE:g} or more": _of(sum(d >= LARGE for d in deltas), len(own)),
                f"darker by {LARGE:g} or more": _of(sum(d <= -LARGE for d in deltas), len(own)),
                "unchanged": _of(sum(e["verdict"].startswith("unchanged") for e in every), len(every)),
                "another person?": _of(sum(e["verdict"].startswith("another person") for e in every), len(every)),
            }
        )
    return rows


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _of(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.0f} %)" if whole else "–"


def page(data: Row) -> str:
    """The page, from the numbers alone."""
    from evenedit.report.render.index import level_name

    counts = data["counts"]
    asked = f"{counts['edits']:,} edits asked for, {counts['refused']:,} refused, {counts['failed']:,} failed"
    races = {key.rpartition(".")[2]: n for key, n in counts.items() if key.startswith("portraits.race.")}
    faces = ", ".join(
        f"{n} labelled {TITLES.get(race, race)}" for race, n in sorted(races.items(), key=lambda item: -item[1])
    )
    findings = [
        f"{at}. **{level_name(f['level'], f.get('evidence', '')).partition(':')[0].capitalize()}.** {f['text']}"
        for at, f in enumerate(data["findings"], 1)
    ]
    top = sorted(read(data), key=lambda e: (-e["skin_delta_L"], e["prompt"], e["source"]))[:8]
    lightest = [
        {
            "edit": f"{e['prompt']} {_short(data['prompts'][e['prompt']], 40)}",
            "face": _face(e["source"]),
            "skin L*": _signed(e["skin_delta_L"]),
            "± (standard error)": f"{e['skin_uncertainty_L']:.1f}",
            "nearest Monk tone": f"{e['monk_before']} → {e['monk_after']}",
            "light": e["light"],
            "verdict": e["verdict"],
        }
        for e in top
    ]
    missing: dict[str, int] = {}
    for e in data["edits"]:
        if e["skin_delta_L"] is None:
            missing[e["reason"]] = missing.get(e["reason"], 0) + 1
    gaps = "; ".join(f"{n} × {reason}" for reason, n in sorted(missing.items(), key=lambda item: -item[1]))
    unknown = sum(e["light"] == "unknown" for e in read(data))
    steady = len(read(data)) - unknown
    lines = [
        "# A real audit: 177 edits by Step1X-Edit",
        "",
        "<!-- made by scripts/docs/make_showcase.py: change that file, not this one -->",
        "",
        f"What EvenEdit {data['evenedit']} finds in pictures that a real editor made. Step1X-Edit-v1p2 edited "
        f"{counts['portraits']} FairFace portraits ({faces}) by {len(data['prompts'])} prompts: ten neutral "
        f"edits (A01–A10) "
        f"and ten occupations (B01–B10). {asked}. No judge and no person rated them: all of this was measured "
        f"in pixels.",
        "",
        "No photograph is shown here. The figures hold readings, colours, and differences averaged over all faces.",
        "",
        "## The findings, in the report's words and order",
        "",
        *findings,
        "",
        "## How far the skin moved",
        "",
        *_table(by_kind(data)),
        "",
        f"Readings of skin that are missing: {gaps or 'none'}. Prompts A02, A05 and A10 ask for other light, "
        f"contrast or no "
        "colour: their readings are shown and are no part of the findings on skin tone.",
        "",
        "![Change of the skin's lightness of every edit, by face](images/showcase-skin.svg)",
        "",
        "![Change of the skin's lightness by prompt: mean, lowest and highest](images/showcase-prompts.svg)",
        "",
        "The eight edits that were measured lightest against their source:",
        "",
        *_table(lightest),
        "",
        "The colour of the skin, in the source and in the edit of each face that was measured lightest (in "
        "the source's light "
        "where that could be judged):",
        "",
        "![Colours of the skin before and after](images/showcase-swatches.svg)",
        "",
        "## Where the pictures differ",
        "",
        f"Mean colour difference in {BLOCKS} × {BLOCKS} blocks over all faces; black and white (A05) is left "
        f"out. Nothing is "
        "registered here, so a moved head counts too.",
        "",
        "![Mean difference from the source, neutral edits and occupations](images/showcase-maps.svg)",
        "",
        "## What this cannot show",
        "",
        f"- **{counts['portraits']} faces.** {faces[0].upper()}{faces[1:]}: nothing here compares races, and no number "
        "here says how the editor treats people who look otherwise. A gap between groups needs several faces in each.",
        "- **One output of each portrait and prompt.** Another seed gives other pictures; how much they "
        "would differ is not "
        "known from these.",
        "- **Pixels.** An instrument reads lightness and change. It does not see whether an edit is what was "
        "asked for, nor a "
        "change of apparent race or gender; that takes judges or people. A new backdrop or studio light "
        "changes how light a "
        f"skin looks: {steady} of {len(read(data))} readings rest on light that could be judged, {unknown} do "
        f"not (light: "
        "unknown). Single readings can be wrong ([instruments](instruments.md)).",
        "- **Chosen pictures.** Tables of extremes show what happened at most, not what is usual; the first "
        "table shows that.",
        "",
        "## Make it again",
        "",
        "Pictures and table are no part of the project. With them in a folder (`step1x_edits`, `portraits`):",
        "",
        "<!-- needs: data -->",
        "```sh",
        "EVENEDIT_DATA=data python scripts/docs/make_showcase.py   # audits, then writes this page, its figures and "
        "showcase.json",
        "python scripts/docs/make_showcase.py --page               # the page and its figures anew from showcase.json",
        "```",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Measure unless only the page is wanted, then write page and figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="make page and figures from showcase.json alone")
    parser.add_argument("--study", type=Path, help="folder to keep the audit in, or to go on with")
    given = parser.parse_args(arguments)
    if not given.page:
        if not (DATA / "step1x_edits" / "edits.csv").is_file():
            sys.exit(f"there is no step1x_edits/edits.csv in {DATA}; name the folder by EVENEDIT_DATA")
        with tempfile.TemporaryDirectory() as folder:
            data = measure_all(given.study or Path(folder) / "audit")
        NUMBERS.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")
    data = json.loads(NUMBERS.read_text("utf-8"))
    for name, draw in figures(data).items():
        draw(IMAGES / name)
    PAGE.write_text(page(data), "utf-8")
    print(PAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
