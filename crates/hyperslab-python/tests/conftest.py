"""Shared fixtures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fields import WRITERS

import hyperslab


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
