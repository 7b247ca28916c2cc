"""One engine for chunked arrays in any file format.

>>> import hyperslab
>>> store = hyperslab.open(getfixture("path"))
>>> list(store)
['t']
>>> store["/t"][1, ::2]
array([ 6.,  8., 10.], dtype=float32)

The format (HDF5, TileDB, Zarr, ``.tet``, ``.npy``, ``.npz``) is recognised from the bytes. Reads run on all cores,
without the GIL; :func:`threads` sets the number of threads. Errors have one base class, :class:`HyperslabError`, and a ``kind``.
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
from hyperslab._change import append_along, concat, evolve, remove, rename, set_attributes
from hyperslab._grow import GrowingArray
from hyperslab._native import Array, ArrayWriter, Geometry, Rows, Table, __version__, _after_fork, formats
from hyperslab._references import references
from hyperslab._storage import provide_credentials
from hyperslab._store import ChunkRefs, Group, Store, open, open_array
from hyperslab._threads import threads
from hyperslab._write import File, NewGroup, Writer, append, convert, create, diff, verify

__all__ = [
    "Array",
    "ArrayWriter",
    "Attributes",
    "ChunkRefs",
    "CorruptError",
    "File",
    "Geometry",
    "Group",
    "GrowingArray",
    "HyperslabError",
    "IndexOutOfBounds",
    "InvalidError",
    "IoError",
    "MissingFileError",
    "NewGroup",
    "NotFoundError",
    "Rows",
    "Store",
    "Table",
    "UnsupportedError",
    "Writer",
    "__version__",
    "append",
    "append_along",
    "concat",
    "convert",
    "create",
    "diff",
    "evolve",
    "formats",
    "open",
    "open_array",
    "provide_credentials",
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
