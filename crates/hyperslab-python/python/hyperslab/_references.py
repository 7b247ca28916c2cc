"""Virtual references: chunks of any file as keys of a Zarr store, in the form of kerchunk."""

from __future__ import annotations

import os
from typing import Any

from hyperslab import _native

#: The default limit for bytes of one array that are copied into the document instead of being referenced.
INLINE_LIMIT = 64 << 20


def references(
    path: str | os.PathLike[str],
    *,
    url: str | None = None,
    inline_limit: int = INLINE_LIMIT,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> dict[str, Any] | None:
    """Describe the arrays of a file as a Zarr store whose chunks stay in the file: a kerchunk document, version 1.

    ``url`` is the address of the file for readers; by default its path. Chunks that no Zarr codec can read in place (a
    skipped filter, a clipped chunk at the edge, overlapping writes, text) are copied into the document. An array that would
    need more than ``inline_limit`` bytes of copies is an error that names it. With ``output``, the document is written
    there instead: as JSON, or as a directory of Parquet files if the name ends in ``.parq``.

    >>> import hyperslab
    >>> document = hyperslab.references(getfixture("path"), url="t.npz")
    >>> sorted(document["refs"])
    ['.zgroup', 't/.zarray', 't/.zattrs', 't/0.0']
    """
    return _native.references(path, url=url, inline_limit=inline_limit, output=output, overwrite=overwrite)
