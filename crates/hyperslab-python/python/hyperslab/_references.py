"""Virtual references: chunks of any file as keys of a Zarr store, as kerchunk describes them."""

from __future__ import annotations

import os
from typing import Any

from hyperslab import _native

#: The most bytes of one array that are copied into the document instead of being referenced.
INLINE_LIMIT = 64 << 20


def references(
    path: str | os.PathLike[str],
    *,
    url: str | None = None,
    inline_limit: int = INLINE_LIMIT,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> dict[str, Any] | None:
    """The arrays of a file as a Zarr store whose chunks stay where they are: kerchunk's version 1 document.

    ``url`` is where readers will find the file; its path when left out. Chunks that no Zarr codec can read in place (a filter that
    was skipped, a clipped chunk at the edge, overlapping writes, texts) are copied into the document; an array that would need more
    than ``inline_limit`` bytes of that is refused by name. With ``output``, the document is written there instead: as JSON, or as a
    directory of Parquet files where the name ends in ``.parq``.

    >>> import hyperslab
    >>> document = hyperslab.references(getfixture("path"), url="t.npz")
    >>> sorted(document["refs"])
    ['.zgroup', 't/.zarray', 't/.zattrs', 't/0.0']
    """
    return _native.references(path, url=url, inline_limit=inline_limit, output=output, overwrite=overwrite)
