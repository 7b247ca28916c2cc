"""Open files and their groups."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from hyperslab import _native
from hyperslab._errors import HyperslabError, InvalidError, NotFoundError
from hyperslab._native import Array
from hyperslab._native import Store as _NativeStore
from hyperslab._storage import check_remote, flat, located, new_opening, recalled, split

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hyperslab._attributes import Attributes
    from hyperslab._html import Tree
    from hyperslab._storage import StorageOptions


class ChunkRefs(NamedTuple):
    """Where an array's chunks are stored: one row per stored span."""

    #: The chunk's grid coordinates, one column per axis.
    coords: NDArray[np.uint64]
    #: The file or object inside the store; empty for the store's own file.
    blobs: NDArray[np.object_]
    offsets: NDArray[np.uint64]
    lengths: NDArray[np.uint64]
    #: Bit ``i``: filter ``i`` was skipped.
    filter_masks: NDArray[np.uint32]
    #: Whether the stored bytes are the raw elements.
    plain: NDArray[np.bool_]
    #: Order of overlapping writes: 0 is the oldest, later ones win.
    layers: NDArray[np.uint32]


class Group(Mapping[str, Any]):
    """A group: a mapping from names to nodes, in file order. Paths work too: ``group["a/b"]``."""

    _native: _NativeStore
    _path: str

    def __init__(self, native: _NativeStore, path: str) -> None:
        self._native = native
        self._path = path

    @property
    def path(self) -> str:
        """The path in the store."""
        return self._path

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._path.rsplit("/", 1)[-1]

    @property
    def attrs(self) -> Attributes:
        """The attributes of the group."""
        kind, value = self._native.node(self._path)
        attributes: Attributes = value.attrs if kind == "array" else value
        return attributes

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str):
            raise InvalidError(f"a group is indexed by names, not {type(name).__name__}")
        return _node(self._native, _join(self._path, name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._native.children(self._path))

    def __len__(self) -> int:
        return len(self._native.children(self._path))

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return self._native.has_node(_join(self._path, name))

    def groups(self) -> Iterator[tuple[str, Group]]:
        """The groups directly below."""
        return ((name, node) for name, node in self._readable() if isinstance(node, Group))

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """The arrays directly below.

        >>> [(name, array.shape) for name, array in getfixture("store").arrays()]
        [('t', (4, 6))]
        """
        return ((name, node) for name, node in self._readable() if isinstance(node, Array))

    def walk(self) -> Iterator[tuple[str, Any]]:
        """All nodes below with their paths, parents before children. For a node that cannot be read, the exception is
        returned."""
        for name in self:
            path = _join(self._path, name)
            try:
                node = _node(self._native, path)
            except HyperslabError as error:
                yield path, error
                continue
            yield path, node
            if isinstance(node, Group):
                yield from node.walk()

    def visititems(self, func: Callable[[str, Any], Any]) -> Any:
        """Call a function with the relative name and the node of everything below, as in h5py. Stop at the first result
        that is not ``None`` and return it. Nodes that cannot be read are skipped.

        >>> getfixture("store").visititems(lambda name, node: (name, node.shape))
        ('t', (4, 6))
        """
        base = self._path.rstrip("/") + "/"
        for path, node in self.walk():
            if isinstance(node, HyperslabError):
                continue
            answer = func(path.removeprefix(base), node)
            if answer is not None:
                return answer
        return None

    def visit(self, func: Callable[[str], Any]) -> Any:
        """Like :meth:`visititems`, but pass only the names."""
        return self.visititems(lambda name, _: func(name))

    @property
    def parent(self) -> Group:
        """The parent group. The root is its own parent."""
        return Group(self._native, self._path.rsplit("/", 1)[0] or "/")

    def tree(self, depth: int | None = None) -> Tree:
        """Everything below as an indented tree, to the given depth.

        >>> getfixture("store").tree()
        /
        └── t  float32  4 × 6  contiguous
        """
        from hyperslab._html import Tree

        return Tree(self, depth)

    def _repr_html_(self) -> str:
        from hyperslab._html import group_html

        return group_html(self, "group", self._path)

    def _readable(self) -> Iterator[tuple[str, Any]]:
        for name in self:
            try:
                yield name, self[name]
            except HyperslabError:
                continue

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and (self._native.location, self._path) == (
            other._native.location,
            other._path,
        )

    def __hash__(self) -> int:
        return hash((self._native.location, self._path))

    def __repr__(self) -> str:
        from hyperslab._html import group_text

        return group_text(self, f"<hyperslab.Group {self._path!r} of {self._native.path!r}: {len(self)} nodes>")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_reopen, (self._native.location, self._path, self._native.options))


class Store(Group):
    """An open file or directory: its root group, and properties of the whole store.

    A context manager. Its arrays stay readable after it is closed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        mapped: bool = True,
        views: bool = False,
        threads: int | None = None,
        memory: int | None = None,
        at: int | tuple[int, int] | None = None,
        key: bytes | None = None,
        external: str = "beside",
        storage_options: StorageOptions | None = None,
        anonymous: bool = False,
        _opening: str | None = None,
        _withheld: tuple[str, ...] = (),
    ) -> None:
        times = (0, at) if isinstance(at, int) else at
        path, storage_options = located(path, storage_options)
        settings = flat(storage_options)
        check_remote(settings, anonymous, path)
        opening = _opening or new_opening(path)
        # Options of a pickle have been split before.
        settings, withheld = split(settings, opening) if not _withheld else (settings, _withheld)
        secrets = recalled(path, withheld, opening)
        try:
            native = _native.Store(
                path,
                format=format,
                mapped=mapped,
                views=views,
                threads=threads,
                memory=memory,
                at=times,
                key=key,
                external=external,
                storage_options=settings,
                secrets=secrets,
                withheld=withheld,
                anonymous=anonymous,
                opening=opening,
            )
        except HyperslabError as error:
            is_refused = any(text in error.message for text in ("no credentials", "access denied"))
            if secrets is not None or not is_refused:
                raise
            raise type(error)(
                f"{error.message}. Pickles do not contain secrets ({', '.join(withheld)}): set the environment variables of "
                "the credentials in the process that unpickles, or call hyperslab.provide_credentials there",
                **error.details,
            ) from error
        super().__init__(native, "/")

    @property
    def format(self) -> str:
        """The format's name: ``tet``, ``hdf5``, ``tiledb``, ``zarr``, ``npy`` …"""
        return self._native.format

    @property
    def file(self) -> str:
        """The path of the file or directory, or the URL without secrets."""
        return self._native.path

    @property
    def filename(self) -> str:
        """The same as :attr:`file`, for h5py compatibility."""
        return self._native.path

    @property
    def mode(self) -> str:
        """The mode as in h5py: this store is open for reading."""
        return "r"

    @property
    def closed(self) -> bool:
        """Whether the store is closed."""
        return self._native.closed

    def close(self) -> None:
        """Release the file."""
        self._native.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[str]:
        kind, _ = self._native.node("/")
        return iter(self._native.children("/") if kind == "group" else [])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def catalog(self) -> Any:
        """Every node with its shape, type, filters and attributes, as ``tet info --json`` shows it."""
        return self._native.catalog()

    def details(self) -> Any:
        """Details of the file beyond its nodes."""
        return self._native.details()

    def verify(self, deep: bool = False) -> Any:
        """Check structures; with ``deep`` also every chunk. Damage is a finding, not an exception.

        >>> getfixture("store").verify(deep=True)["ok"]
        True
        """
        return self._native.verify(deep)

    def __repr__(self) -> str:
        if self.closed:
            return f"<hyperslab.Store {self.file!r}: closed>"
        from hyperslab._html import group_text

        return group_text(self, f"<hyperslab.Store {self.file!r}: {self.format}, {len(self)} nodes>")

    def _repr_html_(self) -> str:
        from hyperslab._html import group_html, root_html

        if self.closed:
            return f"<pre>{escape(repr(self))}</pre>"
        kind, node = self._native.node("/")
        if kind != "group":
            return root_html(self.file, self.format, node)
        return group_html(self, self.format, self.file)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_open_cached, (self._native.location, self._native.options))


def open(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    mapped: bool = True,
    views: bool = False,
    threads: int | None = None,
    memory: int | None = None,
    at: int | tuple[int, int] | None = None,
    key: bytes | None = None,
    external: str = "beside",
    storage_options: StorageOptions | None = None,
    anonymous: bool = False,
) -> Store:
    """Open a file or directory of any format for reading: a path, or a URL (``https://…``, ``s3://bucket/…``).

    ``format`` overrides format detection. ``mapped=False`` reads files by position instead of mapping them. If another
    program truncates a mapped file during a read, the read raises :class:`OSError`; a loss of less than a page may read as
    zeros instead. ``views=True`` returns read-only views into the mapped file for raw selections, like ``numpy.load`` with
    ``mmap_mode``: there is no copy, but accessing truncated data ends the interpreter with a message. ``threads`` is the
    number of threads for reads; see :func:`hyperslab.threads`. ``memory`` limits the size of a result in bytes. For TileDB,
    ``at`` opens an array as of a time in milliseconds since 1970, or between two times, and ``key`` is a 32-byte encryption
    key. The key defaults to ``HYPERSLAB_KEY`` and is never pickled. ``external`` limits the other files that an HDF5 file
    may refer to: ``"none"``, those ``"beside"`` it, or ``"any"``.

    ``storage_options`` configures remote storage: an obstore store, in which ``path`` is a key, or a mapping with fsspec's
    names. For S3 these are ``key``, ``secret``, ``token``, ``profile``, ``endpoint_url``, ``region`` and ``anon``, also
    inside ``client_kwargs``. An unknown name is an error that lists the known ones. By default, credentials come from the
    environment (``AWS_ACCESS_KEY_ID`` …) and the profile files of the AWS tools; ``anonymous=True`` sends none. Pickles
    contain no secrets: of the given options, they leave out keys, tokens and the like. Another process takes these from its
    environment or from :func:`hyperslab.provide_credentials`. A signed URL is its own credential, and is pickled whole.

    >>> import hyperslab
    >>> with hyperslab.open(getfixture("path")) as store:
    ...     store.format, store["t"].shape
    ('npz', (4, 6))
    """
    return Store(
        path,
        format=format,
        mapped=mapped,
        views=views,
        threads=threads,
        memory=memory,
        at=at,
        key=key,
        external=external,
        storage_options=storage_options,
        anonymous=anonymous,
    )


def open_array(
    path: str | os.PathLike[str],
    node: str | None = None,
    *,
    format: str | None = None,
    mapped: bool = True,
    views: bool = False,
    threads: int | None = None,
    storage_options: StorageOptions | None = None,
    anonymous: bool = False,
) -> _native.Array:
    """Open one array. ``node`` may be left out if there is only one.

    >>> import hyperslab
    >>> hyperslab.open_array(getfixture("path"))[3, 5]
    np.float32(23.0)
    """
    store = Store(
        path,
        format=format,
        mapped=mapped,
        views=views,
        threads=threads,
        storage_options=storage_options,
        anonymous=anonymous,
    )
    node = store._native.only_node() if node is None else node
    array = store[node]
    if not isinstance(array, _native.Array):
        raise InvalidError(f"{store.file}: {node} is not an array")
    return array


def _join(parent: str, name: str) -> str:
    if name.startswith("/"):
        return name
    return f"{parent.rstrip('/')}/{name}"


def _node(native: _native.Store, path: str) -> Any:
    kind, value = native.node(path)
    if kind == "group":
        parts = [part for part in path.split("/") if part and part != "."]
        return Group(native, "/" + "/".join(parts))
    if kind == "link":
        raise NotFoundError(f"{native.path}: {path} is a link to {value}, which does not exist")
    return value


def _identity(path: str) -> tuple[Any, ...]:
    """An identity that changes with the file: its times and sizes or, for a directory, those of its metadata documents.
    URLs have none; the names of their openings distinguish them."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    own = (found.st_mtime_ns, found.st_size)
    if not os.path.isdir(path):
        return own
    names = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "__fragments", "__schema", "__commits", "__meta")
    parts: list[Any] = [own]
    for name in names:
        try:
            found = os.stat(os.path.join(path, name))
        except OSError:
            continue
        parts.append((name, found.st_mtime_ns, found.st_size))
    return tuple(parts)


def _token(path: str, node: str, opening: str | None) -> tuple[Any, ...]:
    if opening is not None:
        return ("hyperslab", path, node, opening)
    inside = os.path.join(path, node.strip("/"))
    return ("hyperslab", path, node, _identity(path), _identity(inside) if os.path.isdir(path) else ())


@lru_cache(maxsize=64)
def _opened(path: str, options: tuple[tuple[str, Any], ...], _identity: tuple[Any, ...]) -> Store:
    return Store(path, **dict(options))


def _open_cached(path: str, options: dict[str, Any]) -> Store:
    """The store at a path, opened once per process while the file is unchanged."""
    store = _opened(path, tuple(sorted(options.items())), _identity(path))
    if store.closed:
        return Store(path, **options)
    return store


def _reopen(path: str, node: str, options: dict[str, Any]) -> Any:
    """A node of a store that was opened in another process."""
    options = dict(options)
    decoded = options.pop("decoded", False)
    found = _open_cached(path, options)[node]
    return found.decoded if decoded else found


def _reopen_table(
    path: str,
    node: str,
    options: dict[str, Any],
    steps: list[tuple[str | None, list[str] | None, str | None]],
) -> _native.Table:
    """A selection of a table that was opened in another process."""
    table: _native.Table = _reopen(path, node, options)
    for selection, columns, where in steps:
        table = table.select(selection, columns, where)
    return table
