"""Stores that are joined, added to and edited."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from hyperslab import _native

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
    """Joins stores along a dimension, in the order of its coordinate. The target appears whole or not at all.

    Patterns such as ``data/*.nc`` are expanded. Stores that disagree are an error that names the difference; gaps are in the
    ``notes``. ``attributes`` says what becomes of attributes that differ: ``first``, ``common`` or ``same``.

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
    pairs = None if chunks is None else list(chunks.items())
    return _native.concat(
        _listed(sources), target, dim, format=format, chunks=pairs, overwrite=overwrite, attributes=attributes
    )


def append_along(sources: Path | Sequence[Path], target: Path, dim: str, *, dry_run: bool = False) -> dict[str, Any]:
    """Adds stores to the end of another, along a dimension: all arrays that have it become longer.

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
    delete: Sequence[str] = (),
    dry_run: bool = False,
) -> dict[str, Any]:
    """Sets and deletes attributes of a node, in place where the format can, else by writing the store anew.

    >>> import hyperslab, numpy as np
    >>> path = getfixture("tmp_path") / "t.zarr"
    >>> with hyperslab.create(path) as new:
    ...     _ = new.create_array("/t", np.zeros(2), attrs={"units": "C", "history": "old"})
    >>> hyperslab.set_attributes(path, "/t", {"units": "K"}, delete=["history"])["applied"]
    True
    >>> dict(hyperslab.open(path)["/t"].attrs)
    {'units': 'K'}
    """
    return _native.edit_store(path, node=node, set=dict(set or {}), delete=list(delete), dry_run=dry_run)


def rename(path: Path, old: str, new: str, *, dry_run: bool = False) -> dict[str, Any]:
    """Gives a node another name, or puts it into another group. A coordinate takes its dimension along."""
    return _native.edit_store(path, rename=[(old, new)], dry_run=dry_run)


def remove(path: Path, *nodes: str, dry_run: bool = False) -> dict[str, Any]:
    """Removes nodes and everything below them."""
    return _native.edit_store(path, remove=list(nodes), dry_run=dry_run)
