"""Options that may be given in several forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Chunks for ``"auto"``: the same size as in the command.
_AUTO_BYTES = 4 << 20
# A whole dimension, for the engine.
_WHOLE = (1 << 64) - 1


def names_of(names: str | Sequence[str]) -> list[str]:
    """A list of names. A string is one name, or several separated by commas."""
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def chunk_options(chunks: Sequence[int] | Mapping[str, int] | str | None) -> dict[str, Any]:
    """Chunks as a shape, as extents by dimension (-1 for a whole dimension), or ``"auto"``."""
    if isinstance(chunks, str):
        if chunks != "auto":
            raise ValueError(f'chunks={chunks!r}: give a shape, a dict of extents, or "auto"')
        return {"chunk_bytes": _AUTO_BYTES}
    if isinstance(chunks, Mapping):
        return {"chunk_extents": [(name, _WHOLE if extent == -1 else extent) for name, extent in chunks.items()]}
    return {"chunks": chunks}
