"""Writes the golden stores: a few of `cases.py`, beside this file. Run with the pinned zarr-vectors."""

import pathlib
import shutil
import sys

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here.parent))
import cases  # noqa: E402  (asserts the version)

shutil.rmtree(here / "stores", ignore_errors=True)
cases.write(here / "stores", small=True)
