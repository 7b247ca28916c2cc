"""Shared fixtures."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fields import WRITERS

import hyperslab

if os.environ.get("HYPERSLAB_REQUIRE_PEERS"):
    # A missing library is a failure here: a skipped comparison proves nothing.
    def importorskip(modname: str, *_arguments: Any, **_options: Any) -> Any:
        return importlib.import_module(modname)

    pytest.importorskip = importorskip  # type: ignore[assignment]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file with one array, ``/t``, for docstrings."""
    target = tmp_path / "t.npz"
    np.savez(target, t=np.arange(24, dtype="float32").reshape(4, 6))
    return str(target)


@pytest.fixture
def store(path: str) -> hyperslab.Store:
    """The same file, open."""
    return hyperslab.open(path)


@pytest.fixture(params=WRITERS, ids=[writer.__name__.removeprefix("write_") for writer in WRITERS])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A file of one format, and the node of the test array in it."""
    path, node = request.param(tmp_path)
    return path, node


@pytest.fixture
def array(stored: tuple[Path, str]) -> hyperslab.Array:
    """The test array, in every format."""
    path, node = stored
    opened: hyperslab.Array = hyperslab.open(path)[node]
    return opened
