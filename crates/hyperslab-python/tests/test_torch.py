"""Samples for PyTorch: by index and chunk by chunk, with forked and spawned workers.

PyTorch's wheels for Linux take half a gigabyte, and CUDA as much again. So the tests always use a stand-in with the same
protocol, and also PyTorch itself if it is installed.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from torch_script import COUNT, images, labels

import hyperslab

HERE = Path(__file__).parent
STANDIN = str(HERE / "standin")
INSTALLED = importlib.util.find_spec("torch") is not None

CASES = ["items", "map-0-none", "map-2-fork", "map-2-spawn", "iterable-0-none", "iterable-2-fork", "iterable-2-spawn", "parts"]


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    path = tmp_path / "train.h5"
    with hyperslab.File(path, "w") as file:
        file.create_dataset("images", data=images(), chunks=(10, 6), compression="gzip")
        file.create_dataset("labels", data=labels(), chunks=(64,))
        file.create_dataset("names", data=[f"n{number}" for number in range(COUNT)])
        file.create_dataset("short", data=np.arange(3))
    return path


def with_stand_in() -> dict[str, str]:
    """The environment in which ``import torch`` finds the stand-in first."""
    paths = [STANDIN, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("library", ["stand-in", pytest.param("torch", marks=pytest.mark.skipif(not INSTALLED, reason="PyTorch is not installed"))])
def test_samples_of(library: str, case: str, samples: Path) -> None:
    environment = with_stand_in() if library == "stand-in" else dict(os.environ)
    command = [sys.executable, str(HERE / "torch_script.py"), str(samples), case]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0 and done.stdout.strip() == '"ok"', done.stdout + done.stderr


def test_the_package_does_not_import_torch() -> None:
    script = "import sys, hyperslab; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, env=with_stand_in())
