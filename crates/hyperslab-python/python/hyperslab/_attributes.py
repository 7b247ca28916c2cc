"""What people wrote beside their data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hyperslab._errors import CorruptError


class Attributes(Mapping[str, Any]):
    """Attributes by name, in the file's order. One that is damaged raises when it is asked for, and costs no other."""

    __slots__ = ("_unreadable", "_values")

    def __init__(self, values: dict[str, Any], unreadable: dict[str, str] | None = None) -> None:
        self._values = values
        self._unreadable = unreadable or {}

    def __getitem__(self, name: str) -> Any:
        if name in self._unreadable:
            raise CorruptError(f"attribute {name}: {self._unreadable[name]}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._values
        yield from self._unreadable

    def __len__(self) -> int:
        return len(self._values) + len(self._unreadable)

    def __repr__(self) -> str:
        return f"Attributes({self._values!r})"

    def readable(self) -> dict[str, Any]:
        """Those that can be read."""
        return dict(self._values)

    def unreadable(self) -> dict[str, str]:
        """Those that cannot: why not."""
        return dict(self._unreadable)
