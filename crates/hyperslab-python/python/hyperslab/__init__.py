"""One engine for chunked arrays, whatever file they are in.

>>> import hyperslab
>>> store = hyperslab.open(getfixture("path"))
>>> list(store)
['t']
>>> store["/t"][1, ::2]
array([ 6.,  8., 10.], dtype=float32)

The format (HDF5, TileDB, Zarr, ``.tet``, ``.npy``, ``.npz``) is recognised from the bytes. Reads run on all cores,
without the GIL; :func:`threads` says on how many. Errors have one base class, :class:`HyperslabError`, and a ``kind``.
"""

import os as _os

from hyperslab._attributes import Attributes
from hyperslab._errors import (
    CorruptError,
    HyperslabError,
    IndexOutOfBounds,
    InvalidError,
    IoError,
    MissingFileError,
    NotFoundError,
    UnsupportedError,
)
from hyperslab._change import append_along, concat, remove, rename, set_attributes
from hyperslab._native import Array, ArrayWriter, Geometry, Table, _after_fork, formats
from hyperslab._references import references
from hyperslab._store import ChunkRefs, Group, Store, open, open_array
from hyperslab._threads import threads
from hyperslab._write import Writer, append, convert, create, diff, verify

__all__ = [
    "Array",
    "ArrayWriter",
    "Attributes",
    "ChunkRefs",
    "CorruptError",
    "Geometry",
    "Group",
    "HyperslabError",
    "IndexOutOfBounds",
    "InvalidError",
    "IoError",
    "MissingFileError",
    "NotFoundError",
    "Store",
    "Table",
    "UnsupportedError",
    "Writer",
    "append",
    "append_along",
    "concat",
    "convert",
    "create",
    "diff",
    "formats",
    "open",
    "open_array",
    "references",
    "remove",
    "rename",
    "set_attributes",
    "threads",
    "verify",
]

# Threads do not survive a fork: the child starts its own.
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_after_fork)
