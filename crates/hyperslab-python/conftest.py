"""What doctests and tests share."""

from pathlib import Path

import numpy as np
import pytest

import hyperslab


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A file with one array, ``/t``, of which every format makes the same."""
    target = tmp_path / "t.npz"
    np.savez(target, t=np.arange(24, dtype="float32").reshape(4, 6))
    return str(target)


@pytest.fixture
def store(path: str) -> hyperslab.Store:
    """The same, open."""
    return hyperslab.open(path)
