"""The number of threads for reads."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_wanted: ContextVar[int | None] = ContextVar("hyperslab_threads", default=None)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Run reads inside the block on this many threads. With one, they stay on the caller's thread.

    The default is ``HYPERSLAB_NUM_THREADS`` if it is set, one inside a dask worker, else the number of cores of the process.

    >>> import hyperslab
    >>> with hyperslab.threads(1):
    ...     hyperslab.open(getfixture("path"))["/t"][0, 0]
    np.float32(0.0)
    """
    if count < 1:
        raise ValueError(f"{count} threads")
    token = _wanted.set(count)
    try:
        yield
    finally:
        _wanted.reset(token)


def current() -> int:
    """The number of threads for a read in the current context.

    >>> with threads(3):
    ...     current()
    3
    """
    wanted = _wanted.get()
    if wanted is not None:
        return wanted
    told = os.environ.get("HYPERSLAB_NUM_THREADS")
    if told:
        try:
            return max(1, int(told))
        except ValueError:
            pass
    return 1 if _inside_dask_worker() else _cores()


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _inside_dask_worker() -> bool:
    """Return whether this thread runs a task of a dask worker. Dask counts one core per task."""
    worker = sys.modules.get("distributed.worker")
    return worker is not None and hasattr(worker.thread_state, "execution_state")
