"""Figure 6 of the paper: people's ratings."""

from __future__ import annotations

from evenedit.core.records import ConditionKind
from evenedit.report.figures.base import (
    BLUE,
    FAINT,
    VERMILLION,
    Drawing,
    dashed,
    dot,
    drawing,
    name_rows,
    new_figure,
    query_of,
)
from evenedit.report.figures.inline import tip as tip_id
from evenedit.report.render.agreement_rows import AgreementRows, axis_name, number
from evenedit.report.render.index import Index, interval_excludes
from evenedit.report.render.table import format_number
from evenedit.results.results import Agreement

ARMS = (ConditionKind.FEATURE, ConditionKind.PLACEBO)
DELTAS = ("edit_success", "race_drift", "gender_drift", "skin_tone.distance", "age_drift.distance")
"""The axes of figure 6 (b): edit success, which a feature prompt should keep, and the changes it should lessen."""


def skin_tone_and_deltas(index: Index) -> Drawing | None:
    """Figure 6 of the paper: people's skin-tone ratings by the main factor, and changes with the feature prompt."""
    rows = AgreementRows.of(index.results)
    skin_tone = {c: rows.find("mean_people", "skin_tone", group=index.main_group(c)) for c in index.main.codes}
    codes = [code for code in index.main.codes if skin_tone[code]]
    deltas = [
        (axis, [(arm, a) for arm in ARMS if (a := rows.find("mean_delta", axis, arm)) is not None]) for axis in DELTAS
    ]
    deltas = [(axis, arms) for axis, arms in deltas if any(a.value is not None for _, a in arms)]
    if not codes and not deltas:
        return None
    panels = [draw for draw in (codes and "skin", deltas and "delta") if draw]
    height = 1.25 + 0.3 * max(len(codes), len(deltas))
    alt: list[str] = []
    with new_figure(8.6, height, bool(index.results.simulated)) as figure:
        axes = list(figure.subplots(1, len(panels), squeeze=False)[0])
        if codes:
            ax = axes.pop(0)
            dashed(ax, 3)
            names = {code: index.group_name(index.main_group(code)) for code in codes}
            for y, code in enumerate(codes):
                for a, colour, shape, off in (
                    (skin_tone[code], VERMILLION, "o", -0.12),
                    (rows.judges_mean(skin_tone[code]), FAINT, "D", 0.14),
                ):
                    if a is not None and a.value is not None:
                        filled = interval_excludes(a.low, a.high, 3)
                        tip = _tip(index, names[code], a)
                        dot(ax, y + off, a, colour, filled=filled, tip=tip, shape=shape)
                        alt += [f"{names[code]} {a.value:.2f}."] if a is skin_tone[code] else []
            name_rows(ax, list(names.values()))
            ax.set_title("(a) Skin tone, mean score\n3 = unchanged, above 3 = lighter")
            ax.plot([], [], "o-", color=VERMILLION, label="people")
            if any(rows.judges_mean(skin_tone[code]) for code in codes):
                ax.plot([], [], "D-", color=FAINT, markerfacecolor="none", label="judges, same outputs")
        if deltas:
            ax = axes.pop(0)
            dashed(ax, 0)
            for y, (axis, arms) in enumerate(deltas):
                for arm, a in arms:
                    if a.value is not None:
                        colour, off = (BLUE, -0.12) if arm is ConditionKind.FEATURE else (FAINT, 0.14)
                        tip = _tip(index, f"{axis_name(index, axis)}, {index.name(arm).lower()}", a, signed=True)
                        dot(ax, y + off, a, colour, filled=interval_excludes(a.low, a.high), tip=tip)
                        alt.append(
                            f"{axis_name(index, axis)}, {index.name(arm).lower()}: {format_number(a.value, 'change')}."
                        )
            name_rows(ax, [axis_name(index, axis) for axis, _ in deltas])
            ax.set_title("(b) Mitigated minus baseline, mean score\nbelow 0 = lower score or less change")
            for arm, colour in zip(ARMS, (BLUE, FAINT), strict=True):
                if any(arm == other for _, arms in deltas for other, _ in arms):
                    ax.plot([], [], "o-", color=colour, label=index.name(arm).lower())
        figure.legend(loc="outside lower right", ncols=4, frameon=False)
        return drawing(figure, index, "figure6", deltas=deltas, values=" ".join(alt))


def _tip(index: Index, who: str, a: Agreement, *, signed: bool = False) -> str:
    value = number(a, "change" if signed else "score")
    text = f"{who}: {value.formatted} {value.interval}".rstrip() + f", {a.n_items:,} outputs"
    return tip_id(text, query_of(index, value.cases))
