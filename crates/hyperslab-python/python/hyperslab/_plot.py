"""Plots through matplotlib, if it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab._errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hyperslab._native import Array, Geometry

#: Longer axes are thinned before drawing, because no screen has more pixels.
MAX_CELLS = 4096

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
    kept, values, places = _selected(source, selection)
    while values.ndim > 2:
        axis = next((number for number in range(values.ndim) if values.shape[number] == 1), 0)
        values = np.take(values, 0, axis=axis)
        kept.pop(axis)
    if values.ndim == 0 or values.dtype.kind not in "biufc" or 0 in values.shape:
        raise InvalidError(f"{array.path}: {values.dtype} of shape {values.shape} cannot be drawn; choose numbers along one axis or two")
    label = _unit(array)
    if values.dtype.kind == "c":
        values, label = np.abs(values), f"magnitude of {label}"
    ax = _axes(ax)
    title = ", ".join(_place(array, axis, at) if isinstance(at, int) else at for axis, at in sorted(places.items()) if axis not in kept)
    if title:
        ax.set_title(title)
    if values.ndim == 1:
        ax.plot(_labels(array, kept[0], len(values)), values, **options)
        ax.set_xlabel(_axis_name(array, kept[0]))
        ax.set_ylabel(label)
        return ax
    options.setdefault("cmap", "viridis")
    options.setdefault("origin", "lower" if _rises(array, kept[0], values.shape[0]) else "upper")
    options.setdefault("aspect", "auto" if max(values.shape) > 8 * min(values.shape) else "equal")
    options.setdefault("interpolation", "nearest")
    rows, columns = (_ends(array, kept[axis], values.shape[axis]) for axis in (0, 1))
    if "extent" not in options and rows is not None and columns is not None:
        low, high = rows if options["origin"] == "lower" else rows[::-1]
        options["extent"] = (*columns, low, high)
        options["aspect"] = "auto"
    image = ax.imshow(values, **options)
    ax.set_xlabel(_axis_name(array, kept[1]))
    ax.set_ylabel(_axis_name(array, kept[0]))
    ax.figure.colorbar(image, ax=ax, label=label)
    return ax


def _selected(source: Array, selection: tuple[Any, ...]) -> tuple[list[int], NDArray[Any], dict[int, int | str]]:
    """The remaining axes of a selection, its values, and its start along each axis.

    Of axes that are not selected, the first cell is taken; the last two are kept and thinned.
    """
    if selection and all(isinstance(part, str) for part in selection):
        values = np.asarray(np.ma.filled(_nan(source[selection]), np.nan))
        names = [str(part).split("=")[0].split("[")[0].split("~")[0].strip() for part in selection]
        kept = [axis for axis, name in enumerate(source.dims) if name not in names or values.ndim == source.ndim]
        kept = kept if len(kept) == values.ndim else list(range(values.ndim))
        chosen = {name: str(part) for name, part in zip(names, selection, strict=True)}
        return kept, values, {axis: chosen.get(name) or 0 for axis, name in enumerate(source.dims) if name is not None}
    key = list(selection[0] if len(selection) == 1 and isinstance(selection[0], tuple) else selection)
    if Ellipsis in [part for part in key if isinstance(part, type(Ellipsis))]:
        at = key.index(Ellipsis)
        key[at : at + 1] = [slice(None)] * (source.ndim - len(key) + 1)
    key += [slice(None)] * (source.ndim - len(key))
    free = [axis for axis, part in enumerate(key) if isinstance(part, slice)]
    for axis in free[:-2]:
        if key[axis] == slice(None) and source.shape[axis] > 1:
            key[axis] = 0
    for axis in free[-2:]:
        if key[axis] == slice(None) and source.shape[axis] > MAX_CELLS:
            key[axis] = slice(None, None, -(-source.shape[axis] // MAX_CELLS))
    kept = [axis for axis, part in enumerate(key) if not isinstance(part, int | np.integer)]
    places: dict[int, int | str] = {axis: _start_of(part, source.shape[axis]) for axis, part in enumerate(key) if source.shape[axis] > 1}
    return kept, np.asarray(np.ma.filled(_nan(source[tuple(key)]), np.nan)), places


def _start_of(part: Any, extent: int) -> int | str:
    """The start of a part of a selection."""
    if isinstance(part, int | np.integer):
        return int(part) % extent
    if isinstance(part, slice):
        return next(iter(range(*part.indices(extent))), 0)
    return str(part)


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


def _labels(array: Array, axis: int, count: int) -> NDArray[Any]:
    labels = _coordinate(array, axis)
    if labels is not None and labels.dtype.kind in "iufM" and labels.shape[0] == array.shape[axis]:
        thinned = -(-labels.shape[0] // count)
        values = np.asarray(labels[::thinned])
        if len(values) == count:
            return values
    return np.arange(count) * (-(-array.shape[axis] // max(count, 1)))


def _ends(array: Array, axis: int, count: int) -> tuple[float, float] | None:
    labels = _labels(array, axis, count)
    if count < 2 or labels.dtype.kind == "M":
        return None
    half = float(labels[1] - labels[0]) / 2
    return float(labels[0]) - half, float(labels[-1]) + half


def _rises(array: Array, axis: int, count: int) -> bool:
    """Return whether labels along the axis increase. Rows without labels count from the top, as in a matrix."""
    if _coordinate(array, axis) is None:
        return False
    labels = _labels(array, axis, count)
    return bool(labels[-1] >= labels[0])


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
