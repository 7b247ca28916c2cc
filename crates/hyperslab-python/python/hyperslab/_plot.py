"""Plots through matplotlib, if it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab._errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hyperslab._native import Array, Geometry

#: The axes of longer images are thinned before drawing, because no screen has more pixels.
MAX_CELLS = 4096

#: Of a longer line, the least and the greatest value of each part are drawn.
MAX_POINTS = 1 << 14

#: The number of values of a line that are read at once.
PIECE = 1 << 22

#: Options that only images on a regular grid have.
IMAGE_OPTIONS = frozenset({"extent", "origin", "interpolation", "aspect"})

#: Time units in seconds.
UNITS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}


def _axes(ax: Any, **options: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plot() draws through matplotlib, which is not installed: pip install matplotlib") from error
    return pyplot.subplots(**options)[1]


def _unit(array: Array) -> str:
    attrs = array.attrs.readable()
    name = attrs.get("long_name") or attrs.get("standard_name") or array.name or "value"
    unit = attrs.get("units")
    return f"{name} [{unit}]" if unit else str(name)


def array(array: Array, selection: tuple[Any, ...], ax: Any, decode: bool, options: dict[str, Any] | None) -> Any:
    """Draw one dimension as a line, two as an image, and the first slice of more as an image."""
    options = dict(options or {})
    source = array.decoded if decode else array
    key = _key(source, selection)
    positions = [np.arange(extent)[part] for extent, part in zip(source.shape, key, strict=True)]
    kept = [axis for axis, at in enumerate(positions) if at.ndim]
    if [axis for axis in kept if positions[axis].size > 1] == kept[-1:] and len(kept) == 1:
        values, positions[kept[0]] = _line_values(source, key, kept[0], positions[kept[0]])
    else:
        values = _read(source, key)
    while values.ndim > 2:
        axis = next((number for number in range(values.ndim) if values.shape[number] == 1), 0)
        values = np.take(values, 0, axis=axis)
        kept.pop(axis)
    if values.ndim == 0 or values.dtype.kind not in "biufcMm" or 0 in values.shape:
        raise InvalidError(f"{array.path}: {values.dtype} of shape {values.shape} cannot be drawn; choose numbers or dates along one axis or two")
    label = _unit(array)
    if values.dtype.kind == "c":
        values, label = np.abs(values), f"magnitude of {label}"
    if values.dtype.kind == "m":
        label = f"{label} [{np.datetime_data(values.dtype)[0]}]"
        values = np.where(np.isnat(values), np.nan, values.astype("int64").astype("float64"))
    ax = _axes(ax)
    dates = values.dtype.kind == "M"
    if dates:
        values = _day_numbers(values)
    fixed = [axis for axis, extent in enumerate(source.shape) if axis not in kept and extent > 1]
    if fixed:
        ax.set_title(", ".join(_place(array, axis, int(np.ravel(positions[axis])[0])) for axis in fixed))
    if values.ndim == 1:
        ax.plot(_labels(array, kept[0], positions[kept[0]]), values, **options)
        ax.set_xlabel(_axis_name(array, kept[0]))
        ax.set_ylabel(label)
        if dates:
            ax.yaxis_date()
        return ax
    rows, columns = (_labels(array, axis, positions[axis]) for axis in kept)
    image = _image(ax, values, rows, columns, _coordinate(array, kept[0]) is not None, options)
    ax.set_xlabel(_axis_name(array, kept[1]))
    ax.set_ylabel(_axis_name(array, kept[0]))
    if dates:
        from matplotlib.dates import AutoDateFormatter, AutoDateLocator

        ticks = AutoDateLocator()
        ax.figure.colorbar(image, ax=ax, label=label, ticks=ticks, format=AutoDateFormatter(ticks))
    else:
        ax.figure.colorbar(image, ax=ax, label=label)
    return ax


def _day_numbers(dates: NDArray[Any]) -> NDArray[Any]:
    """The numbers by which matplotlib draws dates; "not a time" is NaN."""
    from matplotlib.dates import date2num

    return np.where(np.isnat(dates), np.nan, np.asarray(date2num(dates), dtype="float64"))


def _image(ax: Any, values: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any], labelled: bool, options: dict[str, Any]) -> Any:
    """Draw cells at their labels. Rows without labels count from the top, as in a matrix."""
    options.setdefault("cmap", "viridis")
    edges = [_edges(labels) for labels in (rows, columns)]
    if all(edge is not None for edge in edges) and not (_is_even(rows) and _is_even(columns)) and not IMAGE_OPTIONS & options.keys():
        image = ax.pcolormesh(edges[1], edges[0], values, **options)
        if not labelled:
            ax.invert_yaxis()
        return image
    rises = labelled and bool(rows[-1] >= rows[0])
    options.setdefault("origin", "lower" if rises else "upper")
    options.setdefault("aspect", "auto" if max(values.shape) > 8 * min(values.shape) else "equal")
    options.setdefault("interpolation", "nearest")
    if "extent" not in options and _is_even(rows) and _is_even(columns):
        (low, high), (left, right) = ((float(edge[0]), float(edge[-1])) for edge in edges if edge is not None)
        options["extent"] = (left, right, low, high) if options["origin"] == "lower" else (left, right, high, low)
        options["aspect"] = "auto"
    return ax.imshow(values, **options)


def _is_even(labels: NDArray[Any]) -> bool:
    """Return whether numbers are at equal distances, except for rounding."""
    if len(labels) < 2 or labels.dtype.kind == "M":
        return False
    step = (float(labels[-1]) - float(labels[0])) / (len(labels) - 1)
    return step != 0 and bool(np.all(np.abs(labels - (labels[0] + np.arange(len(labels)) * step)) < abs(step) * 0.01))


def _edges(labels: NDArray[Any]) -> NDArray[Any] | None:
    """The edges of cells with these centres; ``None`` if the centres neither increase nor decrease."""
    if len(labels) < 2:
        return None
    centres = labels if labels.dtype.kind == "M" else labels.astype("float64")
    steps = np.diff(centres)
    zero = np.zeros((), steps.dtype)
    if not (np.all(steps > zero) or np.all(steps < zero)):
        return None
    middles = centres[:-1] + steps / 2
    return np.concatenate([[centres[0] - steps[0] / 2], middles, [centres[-1] + steps[-1] / 2]])


def _key(source: Array, selection: tuple[Any, ...]) -> list[Any]:
    """One selection per axis: a position, a slice or a list of positions.

    Of axes that are not selected, the first cell is taken; the last two are kept, and thinned if they become an image.
    """
    if selection and all(isinstance(part, str) for part in selection):
        key = _named_key(source, selection)
    else:
        key = _positional_key(source, list(selection[0] if len(selection) == 1 and isinstance(selection[0], tuple) else selection))
    free = [axis for axis, part in enumerate(key) if isinstance(part, slice)]
    for axis in free[:-2]:
        if key[axis] == slice(None) and source.shape[axis] > 1:
            key[axis] = 0
    long = [axis for axis, part in enumerate(key) if not _is_position(part) and source.shape[axis] > 1]
    for axis in free[-2:] if len(long) > 1 else []:
        if key[axis] == slice(None) and source.shape[axis] > MAX_CELLS:
            key[axis] = slice(None, None, -(-source.shape[axis] // MAX_CELLS))
    return key


def _is_position(part: Any) -> bool:
    return isinstance(part, int | np.integer)


def _positional_key(source: Array, key: list[Any]) -> list[Any]:
    if any(part is Ellipsis for part in key):
        at = next(at for at, part in enumerate(key) if part is Ellipsis)
        key[at : at + 1] = [slice(None)] * (source.ndim - len(key) + 1)
    if len(key) > source.ndim:
        raise InvalidError(f"{source.path}: {len(key)} selections for {source.ndim} axes")
    return key + [slice(None)] * (source.ndim - len(key))


def _named_key(source: Array, selection: tuple[str, ...]) -> list[Any]:
    """The key for selections as text: ``time[3:7]``, ``lat=-5..5``, ``lat~50``, ``[0, ::2]``."""
    key: list[Any] = [slice(None)] * source.ndim
    for text in (part.strip() for part in selection):
        if text.startswith("["):
            parts = [part.strip() for part in text[1:-1].rstrip(", ").split(",") if part.strip()]
            for axis, part in enumerate(_positional_key(source, [Ellipsis if part == "..." else _position(part) for part in parts])):
                key[axis] = part if key[axis] == slice(None) else key[axis]
            continue
        name = text.partition("[")[0] if text.endswith("]") else text.partition("=")[0] if "=" in text else text.partition("~")[0]
        name = name.strip()
        if name not in source.dims:
            # The selection fails in the same way as in other methods.
            source[text]
            raise InvalidError(f"{source.path}: no dimension {name}")
        axis = source.dims.index(name)
        key[axis] = _position(text.partition("[")[2][:-1]) if text.endswith("]") else _labelled(source, axis, text)
    return key


def _position(text: str) -> int | slice:
    """A position or a slice as text."""
    parts = [int(part) if part.strip() else None for part in text.split(":")]
    if len(parts) > 1:
        return slice(*parts)
    if parts[0] is None:
        raise InvalidError(f"{text!r} is not a position")
    return parts[0]


def _labelled(source: Array, axis: int, text: str) -> int | slice:
    """The positions along an axis that a selection by label chooses."""
    others = [f"{name}[0]" for number, name in enumerate(source.dims) if number != axis]
    labels = _coordinate(source, axis)
    if hasattr(labels, "dims") and labels.dims == (source.dims[axis],):
        chosen, every = np.asarray(labels[text]), np.asarray(labels[:])
    else:
        # Labels that are part of the array increase by one, or are texts.
        chosen, every = np.asarray(source[(text, *others)]), np.asarray(labels) if labels is not None else np.arange(source.shape[axis])
        ends = text.partition("=")[2].partition("..")
        first, last = (end.strip() for end in (ends[0], ends[2] if ends[1] else ends[0]))
        inside = np.ones(len(every), bool)
        if first:
            inside &= every >= np.asarray(first).astype(every.dtype)
        if last:
            inside &= every <= np.asarray(last).astype(every.dtype)
        if "=" not in text or int(inside.sum()) != chosen.size:
            raise InvalidError(f"{source.path}: {text}: choose positions along {source.dims[axis]} to draw it")
        chosen = every[inside] if chosen.ndim else every[inside][0]
    if not chosen.ndim:
        return int(np.flatnonzero(every == chosen)[0])
    if not chosen.size:
        return slice(0, 0)
    first = int(np.flatnonzero(every == chosen[0])[0])
    if np.array_equal(every[first : first + len(chosen)], chosen):
        return slice(first, first + len(chosen))
    return slice(first, first - len(chosen) if first >= len(chosen) else None, -1)


def _read(source: Array, key: list[Any]) -> NDArray[Any]:
    return np.asarray(np.ma.filled(_nan(source[tuple(key)]), np.nan))


def _line_values(source: Array, key: list[Any], axis: int, positions: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The values of a line and their positions. Of a long line, the extremes of each part."""
    if len(positions) <= MAX_POINTS:
        return _read(source, key), positions
    each = -(-2 * len(positions) // MAX_POINTS)
    values, chosen = [], []
    for start in range(0, len(positions), max(PIECE // each, 1) * each):
        piece = positions[start : start + max(PIECE // each, 1) * each]
        part = slice(int(piece[0]), None if piece[-1] < piece[0] and piece[-1] == 0 else int(piece[-1]) + (1 if piece[-1] >= piece[0] else -1), int(piece[1] - piece[0]) if len(piece) > 1 else 1)
        here = _read(source, [*key[:axis], part if isinstance(key[axis], slice) else piece, *key[axis + 1 :]])
        if here.dtype.kind not in "biufcMm":
            return here, piece
        at = _extremes(here, each)
        values.append(here[at])
        chosen.append(piece[at])
    return np.concatenate(values), np.concatenate(chosen)


def _extremes(values: NDArray[Any], each: int) -> NDArray[np.intp]:
    """The places of the least and the greatest of every ``each`` values, in order. A part without numbers keeps one value."""
    sizes = np.abs(values) if values.dtype.kind == "c" else values
    if sizes.dtype.kind in "Mm":
        sizes = np.where(np.isnat(sizes), np.nan, sizes.astype("int64").astype("float64"))
    whole = len(values) // each
    found = []
    for start, block in ((0, sizes[: whole * each].reshape(whole, each)), (whole * each, sizes[whole * each :].reshape(1, -1))):
        if block.size:
            rows = start + np.arange(len(block)) * block.shape[1]
            missing = np.isnan(block) if block.dtype.kind == "f" else np.zeros(block.shape, bool)
            least = np.where(missing, np.inf, block).argmin(axis=1)
            greatest = np.where(missing, -np.inf, block).argmax(axis=1)
            found += [rows + least, rows + greatest]
    return np.unique(np.concatenate(found))


def _place(array: Array, axis: int, at: int) -> str:
    """The position along an axis in the notation of `tet plot`: `time = 2020-01-08`."""
    name = array.dims[axis] or f"axis {axis}"
    labels = _coordinate(array, axis)
    if labels is None or labels.dtype.kind not in "biufMUSOT":
        return f"{name} = {at}"
    value = np.asarray(labels[at]).reshape(-1)[0]
    if labels.dtype.kind == "M":
        return f"{name} = {_short(value)}"
    attrs = labels.attrs.readable() if hasattr(labels, "attrs") else {}
    date = _date(value, str(attrs.get("units") or ""), str(attrs.get("calendar") or "standard"))
    text = f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
    return f"{name} = {date or text}"


def _date(value: Any, units: str, calendar: str) -> str | None:
    """The date that a number represents; ``None`` for calendars that NumPy does not support."""
    unit, _, since = units.partition(" since ")
    seconds = UNITS.get(f"{unit.strip().removesuffix('s')}s")
    if seconds is None or not since or calendar not in ("standard", "gregorian", "proleptic_gregorian"):
        return None
    try:
        origin = np.datetime64(since.strip().replace(" ", "T"), "s")
    except ValueError:
        return None
    date = origin + np.timedelta64(round(float(value) * seconds), "s")
    return _short(date) if min(date, origin) >= np.datetime64("1582-10-15") else None


def _short(date: Any) -> str:
    """A date, without the time if it is midnight."""
    text = str(date)
    day, _, time = text.partition("T")
    return day if not time.strip("0:.") else f"{day}T{time.removesuffix(':00')}"


def _nan(values: Any) -> Any:
    """Convert masked integers to floats with NaN, because gaps in a plot require NaN."""
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "biu":
        return values.astype("float64")
    return values


def _coordinate(array: Array, axis: int) -> Any:
    """The array of labels along an axis, if it is numeric and in the same store."""
    from hyperslab._store import _open_cached

    where = array.labels[axis] if axis < len(array.labels) else None
    if isinstance(where, np.ndarray):
        return where
    if not isinstance(where, str):
        return None
    _, (location, _, options) = array.__reduce__()
    options = {name: value for name, value in options.items() if name != "decoded"}
    found = _open_cached(location, options)[where]
    return found if getattr(found, "ndim", 0) == 1 and found.shape[0] == array.shape[axis] else None


def _labels(array: Array, axis: int, positions: NDArray[Any]) -> NDArray[Any]:
    """The labels at these positions, or the positions."""
    labels = _coordinate(array, axis)
    if labels is None or labels.dtype.kind not in "iufM":
        return positions
    if len(positions) < 2 or len(np.unique(np.diff(positions))) > 1:
        return np.asarray(labels[:])[positions]
    first, step = int(positions[0]), int(positions[1] - positions[0])
    stop = int(positions[-1]) + step
    return np.asarray(labels[slice(first, None if stop < 0 else stop, step)])


def _axis_name(array: Array, axis: int) -> str:
    name = array.dims[axis] if axis < len(array.dims) else None
    labels = _coordinate(array, axis)
    attrs = labels.attrs.readable() if hasattr(labels, "attrs") else {}
    text = str(attrs.get("long_name") or attrs.get("standard_name") or name or f"axis {axis}")
    return f"{text} [{attrs['units']}]" if attrs.get("units") else text


def geometry(geometry: Geometry, level: int | None, axes: Sequence[str] | None, ax: Any, options: dict[str, Any] | None) -> Any:
    """Draw points, and lines between linked vertices."""
    names = list(geometry.axes)
    wanted = list(axes) if axes is not None else names[:2]
    missing = [name for name in wanted if name not in names]
    if missing or len(wanted) not in (2, 3):
        raise InvalidError(f"axes {wanted}: choose two or three of {names}")
    chosen = [names.index(name) for name in wanted]
    found = geometry.query(level=level)
    points = found["vertices"][:, chosen]
    options = dict(options or {})
    three = {"subplot_kw": {"projection": "3d"}} if len(wanted) == 3 else {}
    ax = _axes(ax, **three)
    links = found["links"]
    if links is not None and len(links) and links.ndim == 2:
        # A NaN ends each line.
        gap = np.full((len(links), 1, len(chosen)), np.nan)
        lines = np.concatenate([points[links], gap], axis=1).reshape(-1, len(chosen))
        ax.plot(*lines.T, **{"linewidth": 0.8, **options})
    else:
        ax.scatter(*points.T, **{"s": 2, **options})
    ax.set_xlabel(wanted[0])
    ax.set_ylabel(wanted[1])
    if len(wanted) == 3:
        ax.set_zlabel(wanted[2])
    else:
        ax.set_aspect("equal")
    return ax
