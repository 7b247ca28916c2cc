"""Join, extend and edit stores."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hyperslab import _native
from hyperslab._options import chunk_options, names_of

Path = str | os.PathLike[str]


def _listed(sources: Path | Sequence[Path]) -> list[Path]:
    return [sources] if isinstance(sources, str | os.PathLike) else list(sources)


def concat(
    sources: Path | Sequence[Path],
    target: Path,
    dim: str,
    *,
    format: str | None = None,
    chunks: Mapping[str, int] | None = None,
    overwrite: bool = False,
    attributes: str = "first",
) -> dict[str, Any]:
    """Join stores along a dimension, in the order of its coordinate. The target appears complete or not at all.

    Patterns such as ``data/*.nc`` are expanded. If stores disagree, the error names the difference; gaps are reported in
    ``notes``. ``attributes`` gives the rule for attributes that differ: ``first``, ``common`` or ``same``.

    >>> import hyperslab, numpy as np
    >>> folder = getfixture("tmp_path")
    >>> for day in range(2):
    ...     with hyperslab.create(folder / f"{day}.zarr") as new:
    ...         _ = new.create_array("/day", np.array([day]), dims=("day",))
    ...         _ = new.create_array("/t", np.full((1, 2), day), dims=("day", "x"))
    >>> hyperslab.concat(str(folder / "[01].zarr"), folder / "all.zarr", "day")["arrays"]
    2
    >>> hyperslab.open(folder / "all.zarr")["/t"][...].tolist()
    [[0, 0], [1, 1]]
    """
    pairs = chunk_options(chunks).get("chunk_extents")
    return _native.concat(
        _listed(sources), target, dim, format=format, chunks=pairs, overwrite=overwrite, attributes=attributes
    )


def append_along(sources: Path | Sequence[Path], target: Path, dim: str, *, dry_run: bool = False) -> dict[str, Any]:
    """Append stores to another along a dimension: all arrays with that dimension grow.

    >>> import hyperslab, numpy as np
    >>> folder = getfixture("tmp_path")
    >>> for day, name in enumerate(["all.zarr", "next.zarr"]):
    ...     with hyperslab.create(folder / name) as new:
    ...         _ = new.create_array("/day", np.array([day]), dims=("day",))
    ...         _ = new.create_array("/t", np.full((1, 2), day), dims=("day", "x"))
    >>> hyperslab.append_along(folder / "next.zarr", folder / "all.zarr", "day")["after"]
    2
    >>> hyperslab.open(folder / "all.zarr")["/day"][...].tolist()
    [0, 1]
    """
    return _native.append_along(_listed(sources), target, dim, dry_run=dry_run)


def set_attributes(
    path: Path,
    node: str = "/",
    set: Mapping[str, Any] | None = None,
    *,
    delete: str | Sequence[str] = (),
    dry_run: bool = False,
) -> dict[str, Any]:
    """Set and delete attributes of a node, in place if the format allows it, otherwise by rewriting the store.

    >>> import hyperslab, numpy as np
    >>> path = getfixture("tmp_path") / "t.zarr"
    >>> with hyperslab.create(path) as new:
    ...     _ = new.create_array("/t", np.zeros(2), attrs={"units": "C", "history": "old"})
    >>> hyperslab.set_attributes(path, "/t", {"units": "K"}, delete=["history"])["applied"]
    True
    >>> dict(hyperslab.open(path)["/t"].attrs)
    {'units': 'K'}
    """
    return _native.edit_store(path, node=node, set=dict(set or {}), delete=names_of(delete), dry_run=dry_run)


def rename(path: Path, old: str, new: str, *, dry_run: bool = False) -> dict[str, Any]:
    """Rename a node or move it to another group. Renaming a coordinate also renames its dimension."""
    return _native.edit_store(path, rename=[(old, new)], dry_run=dry_run)


def remove(path: Path, *nodes: str, dry_run: bool = False) -> dict[str, Any]:
    """Remove nodes and everything below them."""
    return _native.edit_store(path, remove=list(nodes), dry_run=dry_run)


def evolve(
    path: Path,
    node: str = "/",
    *,
    add: Mapping[str, Any] | None = None,
    drop: Sequence[str] = (),
    fill: Mapping[str, Any] | None = None,
    filters: str = "zstd:3",
    dry_run: bool = False,
) -> None:
    """Add fields to a TileDB array and drop others. Applies all changes or none.

    ``add`` maps names to types: ``"int16"``, ``"string"``, ``"datetime64[ns]"`` or a NumPy type. ``"int16?"`` allows missing
    values. Existing cells get the value in ``fill``, or TileDB's default. Dropped fields remain readable at earlier times.

    >>> import hyperslab, numpy as np
    >>> path = getfixture("tmp_path") / "t.tiledb"
    >>> with hyperslab.create(path) as new:
    ...     _ = new.create_array("/a", np.arange(3))
    >>> hyperslab.evolve(path, add={"quality": "int16"}, fill={"quality": -1})
    >>> hyperslab.open(path)["/quality"][...].tolist()
    [-1, -1, -1]
    >>> hyperslab.evolve(path, drop=["quality"])
    >>> list(hyperslab.open(path))
    ['a']
    """
    types = [(name, kind if isinstance(kind, str) else str(np.dtype(kind))) for name, kind in (add or {}).items()]
    fills = [(name, str(value)) for name, value in (fill or {}).items()]
    return _native.evolve(path, node, add=types, drop=list(drop), fill=fills, filters=filters, dry_run=dry_run)
