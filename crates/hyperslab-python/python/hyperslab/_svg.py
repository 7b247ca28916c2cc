"""Draws an array's shape and chunks for notebooks: a bar, a rectangle or a box with the lines of the grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

#: The longest side in pixels, and the shortest that is still visible.
LONGEST, SHORTEST = 140.0, 14.0
#: The maximum number of grid lines per axis.
MAX_CUTS = 24
#: The offset to the right and down per pixel of depth.
SLANT = 0.55

_LINE = 'stroke="currentColor" stroke-width="{width}" stroke-opacity="{opacity}" fill="none"'
_TEXT = 'font-size="11" fill="currentColor" font-family="inherit"'


def chunks_svg(shape: Sequence[int], chunks: Sequence[int] | None, names: Sequence[str | None]) -> str:
    """The last three axes as a box, and earlier axes as a smaller picture beside it. Empty for a scalar."""
    if not shape:
        return ""
    own = list(chunks) if chunks is not None else list(shape)
    start = max(0, len(shape) - 3)
    parts = []
    if start:
        # Axes before the last three show how often the box is repeated.
        parts.append(_one(shape[:start][-2:], own[:start][-2:], names[:start][-2:], 0.6))
        parts.append('<span style="font-size:16px;opacity:.6">×</span>')
    parts.append(_one(shape[start:], own[start:], names[start:], 1.0))
    return "".join(parts)


def _sides(shape: Sequence[int], scale: float) -> list[float]:
    """The sides in pixels. The scale is logarithmic, so that a side of 4 is visible beside one of 40,000."""
    logs = [math.log2(max(extent, 1) + 1) for extent in shape]
    top = max(logs)
    return [max(SHORTEST, LONGEST * one / top) * scale for one in logs]


def _cuts(extent: int, chunk: int, side: float) -> list[float]:
    """The chunk boundaries from 0 to the side, thinned evenly if there are too many to draw."""
    if extent <= 0 or chunk <= 0:
        return [0.0, side]
    count = -(-extent // chunk)
    if count > MAX_CUTS:
        return [side * index / MAX_CUTS for index in range(MAX_CUTS + 1)]
    return [side * min(index * chunk, extent) / extent for index in range(count + 1)]


def _label(name: str | None, extent: int) -> str:
    return escape(f"{name} {extent}" if name else str(extent))


def _one(shape: Sequence[int], chunks: Sequence[int], names: Sequence[str | None], scale: float) -> str:
    shape, chunks, names = list(shape), list(chunks), list(names)
    if len(shape) == 1:
        # A bar is horizontal.
        sides = [SHORTEST * 1.6 * scale, _sides(shape, scale)[0]]
        shape, chunks, names, lying = [1, shape[0]], [1, chunks[0]], [None, names[0]], True
        cuts = [_cuts(extent, chunk, side) for extent, chunk, side in zip(shape, chunks, sides, strict=True)]
    else:
        lying = False
        sides = _sides(shape, scale)
        cuts = [_cuts(extent, chunk, side) for extent, chunk, side in zip(shape, chunks, sides, strict=True)]
    depth = sides[0] * SLANT if len(shape) == 3 else 0.0
    height, width = sides[-2], sides[-1]
    left, top = 8.0, 8.0
    lines = _face(cuts[-2], cuts[-1], left + depth, top + depth)
    if depth:
        slanted = [cut * SLANT for cut in cuts[0]]
        # The top and the left face of the box.
        lines += [((left + at, top + at), (left + at + width, top + at)) for at in slanted]
        lines += [((left + at, top + at), (left + at, top + at + height)) for at in slanted]
        lines += [((left + at, top), (left + at + depth, top + depth)) for at in cuts[-1]]
        lines += [((left, top + at), (left + depth, top + at + depth)) for at in cuts[-2]]
    labels = [_text(left + depth + width / 2, top + depth + height + 14, _label(names[-1], shape[-1]), "middle")]
    if not lying:
        labels.append(_text(left + depth + width + 6, top + depth + height / 2 + 4, _label(names[-2], shape[-2]), "start"))
    if depth:
        labels.append(_text(left + depth / 2 - 2, top + height + depth / 2 + 14, _label(names[0], shape[0]), "end"))
    room = 12 + 7 * max(len(_label(name, extent)) for name, extent in zip(names, shape, strict=True))
    shift = room if depth else 0
    total = (shift + left + depth + width + room, top + depth + height + 24)
    corner = _corner(shape, chunks, sides, left + depth, top + depth)
    drawn = "".join(_line(a, b, outer=index < 0) for index, (a, b) in enumerate(lines))
    return (
        f'<svg width="{total[0]:.0f}" height="{total[1]:.0f}" viewBox="{-shift:.0f} 0 {total[0]:.0f} {total[1]:.0f}" role="img" '
        f'aria-label="chunks" style="overflow:visible">{corner}{drawn}{"".join(labels)}</svg>'
    )


Point = tuple[float, float]


def _face(rows: list[float], columns: list[float], left: float, top: float) -> list[tuple[Point, Point]]:
    height, width = rows[-1], columns[-1]
    across = [((left, top + at), (left + width, top + at)) for at in rows]
    down = [((left + at, top), (left + at, top + height)) for at in columns]
    return across + down


def _corner(shape: Sequence[int], chunks: Sequence[int], sides: Sequence[float], left: float, top: float) -> str:
    """The first chunk, filled, at the front of the box."""
    def share(axis: int) -> float:
        extent = max(shape[axis], 1)
        part = min(chunks[axis], extent) / extent
        return max(part * sides[axis], min(3.0, sides[axis]))

    whole = f'<rect x="{left:.1f}" y="{top:.1f}" width="{sides[-1]:.1f}" height="{sides[-2]:.1f}" fill="#e8a33d" fill-opacity="0.18"/>'
    first = f'<rect x="{left:.1f}" y="{top:.1f}" width="{share(-1):.1f}" height="{share(-2):.1f}" fill="#e8a33d" fill-opacity="0.75"/>'
    return whole + first


def _line(start: Point, end: Point, outer: bool) -> str:
    style = _LINE.format(width="1.4" if outer else "0.8", opacity="0.85" if outer else "0.5")
    return f'<path d="M{start[0]:.1f},{start[1]:.1f}L{end[0]:.1f},{end[1]:.1f}" {style}/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {_TEXT}>{text}</text>'
