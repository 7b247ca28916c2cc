"""Representations of objects: text, and HTML for notebooks. Everything that comes from a file is escaped."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from hyperslab._errors import HyperslabError
from hyperslab._svg import chunks_svg

if TYPE_CHECKING:
    from hyperslab._native import Array, Geometry, Rows, Table
    from hyperslab._store import Group

#: Limits for nodes and rows on a page. Longer pages are not useful.
MAX_NODES, MAX_ATTRIBUTES, MAX_COLUMNS, MAX_ROWS = 200, 60, 60, 8
#: The maximum length of a text.
LONGEST = 240

STYLE = """<style>
.hs{font:13px/1.45 system-ui,sans-serif;color:var(--jp-ui-font-color0,inherit);max-width:72em}
.hs code,.hs td,.hs .hs-mono{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px}
.hs .hs-dim{opacity:.65}
.hs .hs-mono{white-space:pre-wrap}
.hs .hs-head{margin:2px 0 6px}
.hs .hs-head b{font-weight:600}
.hs ul{list-style:none;margin:0;padding:0 0 0 1.2em}
.hs li{margin:1px 0}
.hs details>summary{cursor:pointer}
.hs details>summary:hover{background:rgba(128,128,128,.12)}
.hs table{border-collapse:collapse;margin:2px 0;background:none;font:inherit}
.hs table td,.hs table th{border:0;padding:1px 12px 1px 0;text-align:left;vertical-align:top;background:none}
.hs table th{font:inherit;opacity:.65}
.hs .hs-row{display:flex;flex-wrap:wrap;gap:28px;align-items:center}
.hs svg{vertical-align:middle}
</style>"""


def size(count: int) -> str:
    """A byte count in a suitable unit.

    >>> size(512), size(1536), size(3 << 30)
    ('512 B', '1.50 KiB', '3.00 GiB')
    """
    if count < 1024:
        return f"{count} B"
    value, unit = float(count), "B"
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        value /= 1024
        if value < 1024:
            break
    return f"{value:.2f} {unit}" if value < 10 else f"{value:.1f} {unit}"


def filter_text(filter: Mapping[str, Any]) -> str:
    """A filter in short notation: ``gzip:4``."""
    level = filter.get("level")
    return f"{filter['name']}" if level is None else f"{filter['name']}:{level}"


def _crossed(extents: Iterable[int]) -> str:
    return " × ".join(map(str, extents)) or "scalar"


def _shape(array: Array) -> str:
    if not any(array.dims):
        return _crossed(array.shape)
    return " × ".join(f"{name} {extent}" if name else str(extent) for name, extent in zip(array.dims, array.shape, strict=True))


def _filters(array: Array) -> str:
    return " ".join(map(filter_text, array.filters))


def _printable(text: str) -> str:
    """Text on one line of a terminal. Control characters in names would be commands to it."""
    return "".join("\ufffd" if unicodedata.category(letter) == "Cc" else letter for letter in text)


def array_text(array: Array) -> str:
    """One line: path, type, shape, chunks and filters."""
    chunks = f" chunks {array.chunks}" if array.chunks is not None else ""
    filters = f" {_filters(array)}" if array.filters else ""
    return _printable(f"<hyperslab.Array {array.path!r} {array.dtype} {array.shape}{chunks}{filters}>")


def table_text(table: Table) -> str:
    """One line: path and columns."""
    return _printable(f"<hyperslab.Table {table.path!r} {_table_rows(table)}: {_few(table.columns)}>")


def _table_rows(table: Table) -> str:
    """The number of rows. Rows of a selection are only counted if that was done before, because it reads them."""
    rows = _number(table._all_rows)
    return f"selection of {rows} rows" if table._is_part() else f"{rows} rows"


def geometry_text(geometry: Geometry) -> str:
    """One line: path, kinds and vertices."""
    return _printable(f"<hyperslab.Geometry {geometry.path!r} {', '.join(geometry.kinds)}: {_vertices(geometry)} vertices>")


def _few(names: list[str], most: int = 12) -> str:
    more = f" … {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _number(count: Any) -> str:
    try:
        return f"{count():,}"
    except (HyperslabError, OverflowError):
        return "?"


def _vertices(geometry: Geometry) -> str:
    def finest() -> int:
        levels = geometry.levels()
        return int(levels[0]["vertices"]) if levels else 0

    return _number(finest)


def group_text(group: Group, title: str) -> str:
    """A line for the group, and one for each of its first nodes."""
    names = list(itertools.islice(group, 21))
    lines = [title]
    for name in names[:20]:
        lines.append(f"  {name}  {_brief(group, name)}".rstrip())
    if len(names) > 20:
        lines.append(f"  … {len(group) - 20} more")
    return "\n".join(map(_printable, lines))


def _brief(group: Group, name: str) -> str:
    """A brief description of a member of a group."""
    try:
        node = group[name]
    except HyperslabError as error:
        return f"({error.kind})"
    return node_words(node)


def node_words(node: Any) -> str:
    """A brief description of a node."""
    from hyperslab._native import Array, Geometry, Table

    if isinstance(node, Array):
        chunks = "" if node.chunks is None else f"chunks {_crossed(node.chunks)}"
        return "  ".join(part for part in (str(node.dtype), _shape(node), chunks, _filters(node)) if part)
    if isinstance(node, Table):
        return f"table  {_table_rows(node)}, {len(node.columns)} columns"
    if isinstance(node, Geometry):
        return f"{', '.join(node.kinds)}  {_vertices(node)} vertices"
    return "group" if hasattr(node, "walk") else str(node)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    short = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return escape(short)


def _attributes(attrs: Any, open: bool = False) -> str:
    readable, broken = attrs.readable(), attrs.unreadable()
    if not readable and not broken:
        return ""
    rows = [f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in itertools.islice(readable.items(), MAX_ATTRIBUTES)]
    rows += [f"<tr><th>{_text(name)}</th><td>unreadable: {_text(why)}</td></tr>" for name, why in broken.items()]
    more = len(readable) - MAX_ATTRIBUTES
    rows += [f"<tr><td>… {more} more</td></tr>"] if more > 0 else []
    count = len(readable) + len(broken)
    return _folded(f"attributes <span class='hs-dim'>({count})</span>", f"<table>{''.join(rows)}</table>", open)


def _folded(title: str, body: str, open: bool = False) -> str:
    return f"<details{' open' if open else ''}><summary>{title}</summary>{body}</details>"


def _page(body: str) -> str:
    return f'<div class="hs">{STYLE}{body}</div>'


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    return "<table>" + "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows if value) + "</table>"


def _head(kind: str, path: str, facts: str = "") -> str:
    return f'<div class="hs-head"><b>{_text(path)}</b> <span class="hs-dim">{kind}{" · " + facts if facts else ""}</span></div>'


def array_html(array: Array) -> str:
    """Properties beside a picture of the chunks, and the attributes."""
    return _page(_head("array", array.path, _text(array.file)) + _array_body(array))


def _array_body(array: Array) -> str:
    rows = [("type", _text(array.dtype)), ("shape", _text(_shape(array))), ("chunks", _chunk_words(array)), ("size", _array_size(array))]
    rows += [("filters", _text(_filters(array))), ("fill value", _fill(array))]
    if array.maxshape != array.shape:
        rows.append(("may grow to", _text(" × ".join("∞" if most is None else str(most) for most in array.maxshape))))
    picture = chunks_svg(array.shape, array.chunks, array.dims) if 0 not in array.shape else ""
    return f'<div class="hs-row"><div>{_facts(rows)}</div><div>{picture}</div></div>' + _attributes(array.attrs)


def _chunk_words(array: Array) -> str:
    if array.chunks is None:
        return "in one piece"
    count = 1
    for extent, chunk in zip(array.shape, array.chunks, strict=True):
        count *= -(-extent // max(chunk, 1))
    return f"{_text(_crossed(array.chunks))} <span class='hs-dim'>({count:,})</span>"


def _array_size(array: Array) -> str:
    try:
        whole = size(array.nbytes)
        chunks, stored = array.usage()
    except (HyperslabError, OverflowError):
        return ""
    if array.dtype.kind == "O":
        return f"{size(stored)} stored"
    return f"{whole} <span class='hs-dim'>({size(stored)} stored in {chunks:,} chunks)</span>"


def _fill(array: Array) -> str:
    try:
        value = array.fill_value
    except HyperslabError:
        return ""
    return "" if value is None else _text(value)


def table_html(table: Table) -> str:
    """Columns with types, and the first rows."""
    facts = f"{_table_rows(table)}, {len(table.columns)} columns"
    return _page(_head("table", table.path, facts) + _table_body(table, rows=True))


def _table_body(table: Table, rows: bool) -> str:
    dimensions = set(table.dimensions)
    names = table.columns[:MAX_COLUMNS]
    cells = [
        f"<tr><td>{_text(name)}</td><td>{_text(table.dtypes[name])}</td><td class='hs-dim'>{'dimension' if name in dimensions else ''}</td></tr>"
        for name in names
    ]
    cells += [f"<tr><td>… {len(table.columns) - len(names)} more</td></tr>"] if len(table.columns) > len(names) else []
    columns = _folded(f"columns <span class='hs-dim'>({len(table.columns)})</span>", f"<table>{''.join(cells)}</table>", not rows)
    first = ""
    if rows:
        try:
            first = _rows_table(table.head(MAX_ROWS + 1), MAX_ROWS)
        except HyperslabError as error:
            first = f"<p>{_text(error)}</p>"
    return first + columns + _attributes(table.attrs)


def rows_html(rows: Rows) -> str:
    """The first rows."""
    return _page(f'<div class="hs-head"><b>{len(rows):,} rows</b></div>' + _rows_table(rows, 4 * MAX_ROWS))


def _rows_table(rows: Rows, most: int) -> str:
    names = rows.columns[:MAX_COLUMNS]
    values = rows.to_pydict()
    shown = min(len(rows), most)
    head = "".join(f"<th>{_text(name)}</th>" for name in names)
    body = ["<tr>" + "".join(f"<td>{_text(values[name][row])}</td>" for name in names) + "</tr>" for row in range(shown)]
    if shown < len(rows):
        body.append("<tr><td class='hs-dim'>…</td></tr>")
    return f"<table><tr>{head}</tr>{''.join(body)}</table>"


def geometry_html(geometry: Geometry) -> str:
    """Kinds, bounds and levels."""
    return _page(_head(_text(", ".join(geometry.kinds)), geometry.path, f"{_vertices(geometry)} vertices") + _geometry_body(geometry))


def _geometry_body(geometry: Geometry) -> str:
    bounds = geometry.bounds
    rows = []
    if bounds is not None:
        names = itertools.chain(geometry.axes, itertools.repeat("axis"))
        spans = (f"{name} {low:g} … {high:g}" for name, low, high in zip(names, *bounds, strict=False))
        rows.append(("bounds", _text(", ".join(spans))))
    try:
        levels = geometry.levels()
    except HyperslabError as error:
        return f"<p>{_text(error)}</p>"
    head = "<tr><th>level</th><th>vertices</th><th>links</th><th>objects</th></tr>"

    def count(value: int | None) -> str:
        return "" if value is None else f"{value:,}"

    lines = [
        f"<tr><td>{_text(level['path'])}</td><td>{count(level['vertices'])}</td><td>{count(level['links'])}</td><td>{count(level['objects'])}</td></tr>"
        for level in levels
    ]
    return _facts(rows) + f"<table>{head}{''.join(lines)}</table>" + _attributes(geometry.attrs)


def root_html(file: str, format: str, node: Any) -> str:
    """A store whose root is an array, a table or a geometry."""
    from hyperslab._native import Array, Table

    body = _array_body(node) if isinstance(node, Array) else _table_body(node, rows=True) if isinstance(node, Table) else _geometry_body(node)
    return _page(_head(_text(format), file, _text(node_words(node))) + body)


def group_html(group: Group, kind: str, title: str) -> str:
    """The attributes, and the nodes below as an expandable tree."""
    left = itertools.count()
    body = _attributes(group.attrs) + f"<ul>{''.join(_tree(group, left, 0))}</ul>"
    return _page(_head(kind, title, f"{len(group):,} nodes") + body)


def _tree(group: Group, left: Iterator[int], depth: int) -> Iterator[str]:
    from hyperslab._native import Array, Geometry, Table

    names = list(itertools.islice(group, MAX_NODES + 1))
    for index, name in enumerate(names):
        if next(left) >= MAX_NODES:
            yield f"<li class='hs-dim'>… {len(group) - index:,} more</li>"
            return
        try:
            node = group[name]
        except HyperslabError as error:
            yield f"<li><b>{_text(name)}</b> <span class='hs-dim'>{_text(error.kind)}: {_text(error)}</span></li>"
            continue
        words = f"<b>{_text(name)}</b> <span class='hs-dim hs-mono'>{_text(node_words(node))}</span>"
        if isinstance(node, Array):
            yield f"<li>{_folded(words, _array_body(node))}</li>"
        elif isinstance(node, Table):
            yield f"<li>{_folded(words, _table_body(node, rows=False))}</li>"
        elif isinstance(node, Geometry):
            yield f"<li>{_folded(words, _geometry_body(node))}</li>"
        elif hasattr(node, "walk"):
            inner = _attributes(node.attrs) + f"<ul>{''.join(_tree(node, left, depth + 1))}</ul>"
            yield f"<li>{_folded(words, inner, open=depth < 1)}</li>"
        else:
            yield f"<li>{words}</li>"


class Tree:
    """The nodes below a group, as text and as HTML."""

    def __init__(self, group: Group, depth: int | None) -> None:
        self._group = group
        self._depth = depth

    def __repr__(self) -> str:
        return self._group._native.tree(self._group.path, self._depth)

    def _repr_html_(self) -> str:
        return _page(f"<pre class='hs-mono' style='background:none;margin:0'>{escape(repr(self))}</pre>")
