"""The package itself: stubs, docstrings, import time."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hyperslab


def test_stubs_match_the_module(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy.stubtest", "hyperslab._native", "--ignore-disjoint-bases"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


MODULES = ["", "._attributes", "._errors", "._references", "._storage", "._store", "._threads", "._write", ".xarray", ".virtualizarr"]


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_run(request: pytest.FixtureRequest, module: str) -> None:
    loaded = importlib.import_module(f"hyperslab{module}")
    names = {"getfixture": request.getfixturevalue}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder().find(loaded, extraglobs=names):
        # Other tests may have imported libraries that change how scalars are printed.
        with np.printoptions(legacy=False):
            assert runner.run(test).failed == 0, test.name


def test_everything_public_is_documented() -> None:
    for name in hyperslab.__all__:
        assert getattr(hyperslab, name).__doc__, name


def test_import_loads_no_heavy_modules() -> None:
    script = "import sys, numpy; before = set(sys.modules); import hyperslab; print(' '.join(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    brought = {name.split(".")[0] for name in done.stdout.split()}
    assert not brought & {"xarray", "dask", "pandas", "pyarrow", "zarr", "asyncio", "distributed"}
