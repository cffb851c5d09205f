"""Estimates of a panel with closed-form variances: faces and prompts are both samples.

Rows of one face are alike, and so are rows of one prompt. The variance over faces and the variance over prompts both
contain the variance of single cells, which is subtracted once (Cameron, Gelbach and Miller 2011); the result is never
below the larger of the two (MacKinnon, Nielsen and Webb 2021). Degrees of freedom follow Satterthwaite (1946). Tests
of the hypothesis that groups are equal use mean squares pooled over the groups: the quasi-F test of groups, faces
within groups and prompts (Satterthwaite 1946; Winer 1971; Clark 1973).

Faces of one block, such as the pictures of one person or the versions of one base portrait, are alike too. Their
influences are summed before they are squared: the block is the unit. Where every block has every group, a contrast is
one of groups within blocks, and what blocks have in common drops out of it.

Every estimate is a ratio of sums, so faces, prompts and cells enter by their influence on it,
(total - value x count) / sum of counts. On a complete panel these are the sums of squares of the analysis of variance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from evenedit.stats.engine.panel import Panel
from evenedit.stats.engine.variance import Uncertainty, Values, satterthwaite

CHUNK = 2**20
"""About this many numbers are squared at once."""
MOST_LABELS = 0.5
"""Labels that use more than this share of the faces' degrees of freedom are not adjusted for."""


@dataclass(frozen=True, slots=True)
class GroupSums:
    """One group of faces, or of blocks of faces. Arrays are [editor, measure], all editors pooled last."""

    members: NDArray[np.bool_]
    """[face]: which faces these are."""
    value: Values
    """The estimate; NaN without a valid score."""
    total: Values
    count: Values
    """Valid scores."""
    faces: Values
    """Faces with a valid score."""
    prompts: Values
    """Prompts with a valid score."""
    over_faces: Values
    """Variance over faces; NaN with fewer than two faces."""
    face_freedom: Values
    by_prompt: Values
    """[prompt, editor, measure]: the influence of each prompt."""
    has_prompt: NDArray[np.bool_]
    """[prompt, editor, measure]: whether the prompt has a valid score."""
    over_cells: Values
    """Variance of single face x prompt cells."""
    top_prompt: Values
    """The largest share of the total that one prompt holds."""
    top_face: Values
    """The same of one face."""


@dataclass(frozen=True, slots=True)
class PooledVariance:
    """Mean squares over the groups of a factor, per valid score; arrays are [editor, measure]."""

    counts: Values
    """[group, editor, measure]: valid scores."""
    faces: Values
    face_freedom: Values
    interaction: Values
    interaction_freedom: Values
    cells: Values
    cell_freedom: Values
    rate: Values
    """The estimate over all groups."""

    def of(self, weights: Sequence[Values | float]) -> Uncertainty:
        """Return the variance of a weighted sum of group estimates if all groups are equal."""
        scale = sum(
            np.divide(np.square(w), n, out=np.zeros_like(n), where=n > 0)
            for w, n in zip(weights, self.counts, strict=True)
        )
        return self.scaled(np.asarray(scale, dtype=np.float64))

    def scaled(self, scale: Values | float) -> Uncertainty:
        """Return the variance for a sum over groups of squared weight over valid scores."""
        return satterthwaite(
            (scale * self.faces, self.face_freedom),
            (scale * self.interaction, self.interaction_freedom),
            (scale * self.cells, self.cell_freedom),
        )

    def design_effect(self, group: int) -> Values:
        """Return the variance of one group's share over that of independent rows; NaN where nothing varies."""
        weights = [1.0 if at == group else 0.0 for at in range(len(self.counts))]
        inside = self.rate * (1 - self.rate)
        rows = np.divide(inside, self.counts[group], out=np.zeros_like(inside), where=self.counts[group] > 0)
        return np.asarray(np.divide(self.of(weights).variance, rows, out=np.full_like(rows, np.nan), where=rows > 0))


class CrossedPanel:
    """The estimates of one panel with their variances, group by group."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self._blocks = panel.axes.blocks
        self._total = [panel.columns.index(m.total) for m in panel.measures]
        self._count = [panel.columns.index(m.count) for m in panel.measures]
        self._unit = np.array([m.unit for m in panel.measures], dtype=np.float64)
        by_face = self._pooled(panel.cells.sum(axis=1, dtype=np.float64))
        self._face_total, self._face_count = self._ratio_parts(by_face)
        self._groups: dict[bytes, GroupSums] = {}
        self._influences: dict[bytes, tuple[Values, NDArray[np.bool_]]] = {}
        self._pools: dict[tuple[tuple[str, ...], bool], PooledVariance] = {}

    def group(self, mask: NDArray[np.bool_]) -> GroupSums:
        """Return the sums of the faces of a group."""
        key = mask.tobytes()
        if key not in self._groups:
            self._groups[key] = self._sums(mask)
        return self._groups[key]

    @cached_property
    def all_faces(self) -> GroupSums:
        """All faces; the variance over faces is that of faces with the same labels, as the design fixes the labels."""
        mask = np.ones(len(self.panel.axes.clusters), dtype=np.bool_)
        sums = self.group(mask)
        labels = [np.unique(x, return_inverse=True)[1] for x in self.panel.axes.labels.values()]
        indicators = [np.ones((len(mask), 1))] + [np.eye(x.max() + 1)[x][:, 1:] for x in labels]
        design = self._in_blocks(np.concatenate(indicators, axis=1)) / self._in_blocks(np.ones((len(mask), 1)))
        rank = int(np.linalg.matrix_rank(design))
        freedom = sums.faces - rank
        influence = self._in_blocks(self._face_influence(mask, sums))
        rows = influence.reshape(len(influence), -1)
        rest = rows - design @ (np.linalg.pinv(design) @ rows)
        adjusted = (rest**2).sum(axis=0).reshape(freedom.shape) * sums.faces / np.maximum(freedom, 1.0)
        enough = freedom >= np.maximum(MOST_LABELS * sums.faces, 1.0)
        return replace(
            sums,
            over_faces=np.where(enough, adjusted, sums.over_faces),
            face_freedom=np.where(enough, freedom, sums.face_freedom),
        )

    def of(self, group: Mapping[str, str]) -> GroupSums:
        """Return the sums of the faces that carry these labels."""
        return self.group(self.panel.axes.mask(group)) if group else self.all_faces

    def uncertainty(self, groups: Sequence[GroupSums], weights: Sequence[Values | float]) -> Uncertainty:
        """Return the variance of a weighted sum of the estimates of disjoint groups."""
        by_prompt = np.zeros_like(groups[0].by_prompt)
        prompts = np.zeros_like(groups[0].has_prompt)
        for g, w in zip(groups, weights, strict=True):
            used = np.broadcast_to(np.asarray(w) != 0, g.value.shape)
            by_prompt = by_prompt + np.where(used, w, 0.0) * g.by_prompt
            prompts |= g.has_prompt & used
        separate = self._blocks is None or len(groups) == 1
        faces, square, cells, cell_freedom = (_separate if separate else self._in_common)(groups, weights)
        freedom = np.divide(faces**2, square, out=np.ones_like(faces), where=square > 0)
        several = prompts.sum(axis=0).astype(np.float64)
        correction = np.where(several > 1, several / np.maximum(several - 1, 1.0), 0.0)
        over_prompts = correction * (by_prompt**2).sum(axis=0)
        return satterthwaite((faces, freedom), (over_prompts, several - 1), (cells, cell_freedom))

    def pooled(self, factors: tuple[str, ...], contrast: bool = True) -> PooledVariance:
        """Return the mean squares over the groups of a factor, or of the combinations of several.

        They are for contrasts of groups, in which what groups of the same blocks have in common drops out, or for
        groups by themselves.
        """
        if (factors, contrast) not in self._pools:
            levels = [self.panel.axes.levels[f] for f in factors]
            groups = [self.of(dict(zip(factors, c, strict=True))) for c in product(*levels)]
            pooled = _pool(groups)
            complete = self._blocks is not None and len(groups) > 1 and bool(self._touched(groups).all())
            self._pools[factors, contrast] = self._within_blocks(groups, pooled) if contrast and complete else pooled
        return self._pools[factors, contrast]

    def _touched(self, groups: Sequence[GroupSums]) -> NDArray[np.bool_]:
        """[block, group]: whether a face of the block is in the group."""
        return np.stack([self._in_blocks(g.members[:, None])[:, 0] > 0 for g in groups], axis=1)

    def _influence(self, g: GroupSums) -> tuple[Values, NDArray[np.bool_]]:
        """[block, prompt, editor, measure]: the influence on a group's estimate, and whether there is a score."""
        key = g.members.tobytes()
        if key not in self._influences:
            total, count = self._ratio_parts(self._pooled(self._cells(g.members)))
            by_cell = (total - np.nan_to_num(g.value) * count) / np.maximum(g.count, 1.0)
            self._influences[key] = by_cell, count > 0
        return self._influences[key]

    def _cells(self, members: NDArray[np.bool_]) -> Values:
        """Return the sums of the cells of these faces, by block."""
        return self._in_blocks(self.panel.cells * members[:, None, None, None])

    def _in_common(self, groups: Sequence[GroupSums], weights: Sequence[Values | float]) -> tuple[Values, ...]:
        """Return what `_separate` does for groups that share blocks; groups that share none are strata."""
        touched = self._touched(groups)
        stratum = connected_components(touched.T.astype(int) @ touched)[1]
        faces, square, cells, cell_freedom = (np.zeros_like(groups[0].value) for _ in range(4))
        for number in np.unique(stratum):
            influence, met = (np.zeros_like(part) for part in self._influence(groups[0]))
            for g, w, of in zip(groups, weights, stratum, strict=True):
                if of == number:
                    used = np.broadcast_to(np.asarray(w) != 0, g.value.shape)
                    one, has = self._influence(g)
                    influence += np.where(used, w, 0.0) * one
                    met |= has & used
            n, prompts = (met.any(axis=axis).sum(axis=0).astype(np.float64) for axis in (1, 0))
            by_block, by_prompt = ((influence.sum(axis=axis) ** 2).sum(axis=0) for axis in (1, 0))
            part = np.where(n > 1, by_block * n / np.maximum(n - 1, 1.0), np.where(n > 0, np.nan, 0.0))
            faces, square = faces + part, square + part**2 / np.maximum(n - 1, 1.0)
            rest = (influence**2).sum(axis=(0, 1)) - by_block / np.maximum(prompts, 1) - by_prompt / np.maximum(n, 1)
            freedom = np.maximum((n - 1) * (prompts - 1), 0.0)
            cells += np.where(freedom > 0, np.maximum(rest, 0.0) * n * prompts / np.maximum(freedom, 1.0), 0.0)
            cell_freedom += freedom
        return faces, square, cells, cell_freedom

    def _within_blocks(self, groups: Sequence[GroupSums], pooled: PooledVariance) -> PooledVariance:
        """Return the mean squares of blocks that have every group, without what a block's groups have in common."""
        scaled = np.stack([self._influence(g)[0] * np.sqrt(g.count * g.faces * g.prompts) for g in groups])
        scaled -= scaled.mean(axis=0)
        n, prompts = (np.max([getattr(g, name) for g in groups], axis=0).clip(1.0) for name in ("faces", "prompts"))
        by_face, by_prompt = ((scaled.sum(axis=axis) ** 2).sum(axis=(0, 1)) for axis in (2, 1))
        rest = np.maximum((scaled**2).sum(axis=(0, 1, 2)) - by_face / prompts - by_prompt / n, 0.0)
        freedoms = [x * (1 - 1 / len(groups)) for x in (pooled.face_freedom, pooled.cell_freedom)]
        return replace(
            pooled,
            faces=by_face / prompts / np.maximum(freedoms[0], 1.0),
            face_freedom=freedoms[0],
            cells=rest / np.maximum(freedoms[1], 1.0),
            cell_freedom=freedoms[1],
        )

    def _in_blocks(self, values: NDArray[Any]) -> Values:
        """Return the sums over the faces of each block, from [face, ...]; without blocks, the values of the faces."""
        if self._blocks is None:
            return values.astype(np.float64)
        sums = csr_array((np.ones(len(values)), (self._blocks, np.arange(len(values)))))
        return np.asarray(sums @ values.reshape(len(values), -1)).reshape(-1, *values.shape[1:])

    def _sums(self, mask: NDArray[np.bool_]) -> GroupSums:
        members = np.flatnonzero(mask)
        face_total, face_count, (tt, tc, cc) = self._units(mask)
        total, count = face_total.sum(axis=0), face_count.sum(axis=0)
        value = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
        center, size = np.nan_to_num(value), np.maximum(count, 1.0)
        by_face = (face_total - center * face_count) / size
        cells = self._pooled(self.panel.cells[members].sum(axis=0, dtype=np.float64))
        prompt_total, prompt_count = self._ratio_parts(cells)
        by_prompt = (prompt_total - center * prompt_count) / size
        has_prompt = prompt_count > 0
        n, prompts = ((x > 0).sum(axis=0).astype(np.float64) for x in (face_count, prompt_count))
        squares = np.maximum(tt - 2 * center * tc + center**2 * cc, 0.0) / size**2
        face_squares, prompt_squares = (by_face**2).sum(axis=0), (by_prompt**2).sum(axis=0)
        rest = squares - face_squares / np.maximum(prompts, 1) - prompt_squares / np.maximum(n, 1)
        cell_scale = np.where((n > 1) & (prompts > 1), n * prompts / np.maximum((n - 1) * (prompts - 1), 1), 0.0)
        top_prompt, top_face = (
            np.divide(x.max(axis=0, initial=0.0), total, out=np.zeros_like(total), where=total > 0)
            for x in (prompt_total, face_total)
        )
        return GroupSums(
            members=mask,
            value=value,
            total=total,
            count=count,
            faces=n,
            prompts=prompts,
            over_faces=np.where(n > 1, face_squares * n / np.maximum(n - 1, 1), np.nan),
            face_freedom=np.maximum(n - 1, 0.0),
            by_prompt=by_prompt,
            has_prompt=has_prompt,
            over_cells=np.maximum(rest, 0.0) * cell_scale,
            top_prompt=top_prompt,
            top_face=top_face,
        )

    @cached_property
    def _squares(self) -> Values:
        return self._products(self.panel.cells)

    def _units(self, mask: NDArray[np.bool_]) -> tuple[Values, Values, Values]:
        """Return the totals and counts of the faces or blocks of a group, and the sums of their cells' products."""
        if self._blocks is None:
            return self._face_total[mask], self._face_count[mask], self._squares[:, mask].sum(axis=1)
        cells = self._cells(mask)
        total, count = self._ratio_parts(self._pooled(cells.sum(axis=1)))
        return total, count, self._products(cells).sum(axis=1)

    def _face_influence(self, mask: NDArray[np.bool_], sums: GroupSums) -> Values:
        total, count = self._face_total[mask], self._face_count[mask]
        return np.asarray((total - np.nan_to_num(sums.value) * count) / np.maximum(sums.count, 1.0))

    def influences(self, parts: Sequence[tuple[NDArray[np.bool_], float]]) -> tuple[Values, Values]:
        """Return the influence of faces and prompts, [unit, editor, measure], on a weighted sum of disjoint groups."""
        faces = np.zeros_like(self._face_total)
        prompts = np.zeros((len(self.panel.axes.prompts), *faces.shape[1:]))
        for mask, weight in parts:
            sums = self.group(mask)
            faces[mask] += weight * self._face_influence(mask, sums)
            prompts += weight * sums.by_prompt
        return self._in_blocks(faces), prompts

    def _ratio_parts(self, cells: NDArray[np.floating]) -> tuple[Values, Values]:
        """Return totals, in their unit, and counts of each measure from [..., column]."""
        total = np.asarray(cells[..., self._total], dtype=np.float64) / self._unit
        return total, np.asarray(cells[..., self._count], dtype=np.float64)

    def _pooled(self, cells: NDArray[np.floating]) -> NDArray[np.floating]:
        """Append the sum over all editors to [..., editor, column]."""
        return np.concatenate([cells, cells.sum(axis=-2, keepdims=True)], axis=-2)

    def _products(self, cells: NDArray[np.floating]) -> Values:
        """Return total², total x count and count² of every cell, summed over prompts: [3, face, editor, measure]."""
        products = np.empty((3, len(cells), cells.shape[2] + 1, len(self._total)))
        step = max(1, CHUNK // max(1, cells[:1].size))
        for start in range(0, len(cells), step):
            part = slice(start, start + step)
            total, count = self._ratio_parts(self._pooled(cells[part]).astype(np.float64))
            for at, values in enumerate((total * total, total * count, count * count)):
                products[at, part] = values.sum(axis=1)
        return products


def _separate(groups: Sequence[GroupSums], weights: Sequence[Values | float]) -> tuple[Values, ...]:
    """Return the variance over faces, its square over its degrees of freedom, and the same two of cells."""
    faces, square, cells, cell_freedom = (np.zeros_like(groups[0].value) for _ in range(4))
    for g, w in zip(groups, weights, strict=True):
        used = np.broadcast_to(np.asarray(w) != 0, g.value.shape)
        part = np.where(used, np.square(w) * g.over_faces, 0.0)
        faces = faces + part
        square = square + part**2 / np.maximum(g.face_freedom, 1.0)
        cells = cells + np.where(used, np.square(w) * g.over_cells, 0.0)
        cell_freedom += np.where(used, np.maximum((g.faces - 1) * (g.prompts - 1), 0.0), 0.0)
    return faces, square, cells, cell_freedom


def _pool(groups: Sequence[GroupSums]) -> PooledVariance:
    counts = np.stack([g.count for g in groups])
    faces, face_freedom, cells, cell_freedom, mean_prompt, total = (np.zeros_like(counts[0]) for _ in range(6))
    has_prompt = np.zeros_like(groups[0].has_prompt)
    by_prompt = np.zeros_like(groups[0].by_prompt)
    for g in groups:
        several = g.faces > 1
        faces += np.where(several, g.face_freedom * g.count * np.nan_to_num(g.over_faces), 0.0)
        face_freedom += np.where(several, g.face_freedom, 0.0)
        freedom = np.where(several, (g.faces - 1) * np.maximum(g.prompts - 1, 0.0), 0.0)
        cells += freedom * g.count * g.over_cells
        cell_freedom += freedom
        total += g.total
        by_prompt += g.count * g.by_prompt
        has_prompt |= g.has_prompt
    size = counts.sum(axis=0)
    mean_prompt = by_prompt / np.maximum(size, 1.0)
    prompts = has_prompt.sum(axis=0).astype(np.float64)
    # a prompt that a group never met says nothing about how the group differs on it
    deviations = sum(
        g.count * (np.where(g.has_prompt, g.by_prompt - mean_prompt, 0.0) ** 2).sum(axis=0) for g in groups
    )
    met = sum(g.has_prompt.sum(axis=0) - (g.count > 0) for g in groups)
    interaction_freedom = np.maximum(np.asarray(met) - (prompts - 1), 0.0)
    return PooledVariance(
        counts=counts,
        faces=faces / np.maximum(face_freedom, 1.0),
        face_freedom=face_freedom,
        interaction=prompts * deviations / np.maximum(interaction_freedom, 1.0),
        interaction_freedom=interaction_freedom,
        cells=cells / np.maximum(cell_freedom, 1.0),
        cell_freedom=cell_freedom,
        rate=total / np.maximum(size, 1.0),
    )
