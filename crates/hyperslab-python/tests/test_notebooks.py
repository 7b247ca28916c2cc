"""Notebook output: complete and safe HTML, pictures, and a notebook that runs."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import hyperslab
from fields import CHUNKS, SHAPE, field
from hyperslab._svg import chunks_svg

EVIL = "<script>alert('x')</script><img src=x onerror=\"alert(1)\">&amp;"


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects them."""

    VOID = {"img", "br", "input", "path", "rect"}

    def __init__(self, html: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def is_safe(self) -> bool:
        known = {"div", "style", "details", "summary", "table", "tr", "td", "th", "ul", "li", "b", "span", "svg", "path", "rect", "text", "p", "pre"}
        return set(self.tags) <= known and not any(name.startswith("on") or name == "href" for name, _ in self.attributes)


def page(thing: Any) -> Page:
    found = Page(thing._repr_html_())
    assert found.is_safe(), set(found.tags)
    return found


@pytest.fixture
def evil(tmp_path: Path) -> hyperslab.Store:
    """A store in which every name and text is HTML."""
    path = tmp_path / "evil.h5"
    with hyperslab.File(path, "w") as file:
        file.attrs[EVIL.replace("/", "")] = EVIL
        group = file.create_group(EVIL.replace("/", ""))
        group.create_dataset(EVIL.replace("/", ""), data=field(), chunks=CHUNKS, dims=(EVIL.replace("/", ""), "y", "x"), attrs={"units": EVIL, "range": [1, 2]})
    return hyperslab.open(path)


def test_names_and_values_are_escaped(evil: hyperslab.Store) -> None:
    for thing in (evil, evil[EVIL.replace("/", "")], evil[EVIL.replace("/", "")][EVIL.replace("/", "")], evil.tree()):
        found = page(thing)
        assert "script" not in found.tags and "img" not in found.tags
        assert "<script>alert" in found.text, "what was escaped is still there to read"


def test_every_format_shows_shape_type_chunks_and_attributes(stored: tuple[Path, str]) -> None:
    path, node = stored
    store = hyperslab.open(path)
    array = store[node]
    found = page(array)
    assert "float32" in found.text and "20" in found.text and array.path in found.text
    assert "svg" in found.tags
    if array.chunks is not None:
        assert "8 × 5 × 9" in found.text
    if "units" in array.attrs:
        assert "units" in found.text and "K" in found.text
    whole = page(store)
    assert path.name in whole.text and store.format in whole.text and "float32" in whole.text
    assert "float32" in repr(array) and str(array.shape) in repr(array)
    assert path.name in repr(store)


def test_trees_match_the_command(tmp_path: Path) -> None:
    with hyperslab.create(tmp_path / "x.zarr") as new:
        new.create_array("/climate/t", field(), chunks=CHUNKS, dims=("z", "y", "x"), filters="gzip:4")
        new.create_array("/climate/lat", np.arange(17.0), dims=("y",))
        new.create_array("/n", np.arange(3))
    store = hyperslab.open(tmp_path / "x.zarr")
    lines = repr(store.tree()).splitlines()
    assert lines[0] == "/"
    assert "├── climate" in lines
    assert any(line.startswith("│   └── t ") and "float32  z 20 × y 17 × x 9  chunks 8 × 5 × 9  gzip:4" in line for line in lines)
    assert lines[-1].startswith("└── n  int64  3")
    assert repr(store.tree(depth=1)).count("\n") == 2
    assert repr(store["climate"].tree()).splitlines()[0] == "/climate"


def test_large_groups_are_cut(tmp_path: Path) -> None:
    with hyperslab.create(tmp_path / "x.h5") as new:
        for number in range(300):
            new.create_array(f"/a{number:03}", np.zeros(1))
    store = hyperslab.open(tmp_path / "x.h5")
    found = page(store)
    assert "… 100 more" in found.text and "a199" in found.text and "a200" not in found.text
    assert len(repr(store).splitlines()) == 22 and "280 more" in repr(store)


def test_tables_and_rows(tmp_path: Path) -> None:
    import tiledb

    path = str(tmp_path / "t.tiledb")
    domain = tiledb.Domain(tiledb.Dim("x", domain=(0, 99), tile=10, dtype="int64"))
    schema = tiledb.ArraySchema(domain, [tiledb.Attr("score", dtype="f8"), tiledb.Attr(EVIL, dtype="i4")], sparse=True)
    tiledb.Array.create(path, schema)
    with tiledb.open(path, "w") as array:
        array[np.arange(20)] = {"score": np.arange(20) / 2, EVIL: np.arange(20)}
    table = hyperslab.open(path)["/"]
    found = page(table)
    assert "20 rows" in found.text and "score" in found.text and "3.5" in found.text and "…" in found.text
    assert "<script>" in found.text
    assert "20 rows" in page(hyperslab.open(path)).text
    head = table.head(3)
    assert len(head) == 3 and head.to_pydict()["score"] == [0.0, 0.5, 1.0]
    assert "1.0" in page(head).text
    assert "20 rows" in repr(table)


def points(path: Path) -> hyperslab.Geometry:
    """The sample Zarr Vectors store, converted from a table of points."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(1)
    source = path.with_suffix(".parquet")
    pq.write_table(pa.table({axis: random.random(50) for axis in "xyz"}), source)
    hyperslab.convert(source, path, format="zvf")
    return hyperslab.open(path)["/"]


@pytest.mark.parametrize("rank", range(1, 7))
def test_pictures_of_chunks_are_svg(rank: int) -> None:
    shape, chunks = (40, 30, 20, 10, 5, 4)[:rank], (20, 10, 20, 5, 1, 2)[:rank]
    names = [None, "y<", "x", None, "t", "u"][:rank]
    drawn = chunks_svg(shape, chunks, names)
    parts = [part for part in drawn.split("<svg")[1:]]
    assert len(parts) == (1 if rank <= 3 else 2)
    for part in parts:
        root = ElementTree.fromstring("<svg" + part.split("</svg>")[0] + "</svg>")
        width, height = float(root.get("width", 0)), float(root.get("height", 0))
        assert 20 < width < 420 and 20 < height < 300
    # A bar of five chunks has six lines across and two along it.
    if rank == 1:
        assert drawn.count("<path") == 2 + 3


def test_an_enormous_grid_has_few_lines() -> None:
    drawn = chunks_svg((10**9, 10**9, 3), (1, 1, 1), (None, None, None))
    assert drawn.count("<path") < 400
    assert chunks_svg((), (), ()) == ""


def test_control_characters_in_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    with hyperslab.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x\x1b[31mred", data=np.zeros(3))
    text = repr(hyperslab.open(tmp_path / "x.h5"))
    assert "\x1b" not in text and "x\ufffd[31mred" in text


def test_the_version_matches_the_package() -> None:
    from importlib.metadata import version

    assert hyperslab.__version__ == version("hyperslab")


def test_the_notebook_of_the_documentation_runs(tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    source = Path(__file__).parents[3] / "docs" / "tour.ipynb"
    notebook = nbformat.read(source, as_version=4)
    done = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    kinds = [set(output.get("data", {})) for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("text/html" in kind for kind in kinds) >= 3
    assert sum("image/png" in kind for kind in kinds) >= 2
    # Committed notebooks have no outputs, which would be outdated and differ between runs.
    assert all(not cell.get("outputs") for cell in nbformat.read(source, as_version=4).cells if cell.cell_type == "code")
