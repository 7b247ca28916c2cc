"""Attributes of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from hyperslab._errors import CorruptError, UnsupportedError


class Attributes(Mapping[str, Any]):
    """Attributes by name, in file order. A damaged one raises on access and does not affect the others."""

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
        """The attributes that can be read."""
        return dict(self._values)

    def unreadable(self) -> dict[str, str]:
        """The attributes that cannot be read, with the reasons."""
        return dict(self._unreadable)


class NewAttributes(MutableMapping[str, Any]):
    """Attributes of a node that is being written. They are stored when the store is finished."""

    __slots__ = ("_changed", "_values")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)
        self._changed: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"attribute names must be strings, not {type(name).__name__}")
        self._values[name] = value
        self._changed.add(name)

    def __delitem__(self, name: str) -> None:
        if name in self._values and name not in self._changed:
            raise UnsupportedError(f"attribute {name} was stored with its node; hyperslab.set_attributes() deletes it")
        del self._values[name]
        self._changed.discard(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"NewAttributes({self._values!r})"

    def take_changed(self) -> dict[str, Any]:
        """The attributes that are not stored yet."""
        changed = {name: value for name, value in self._values.items() if name in self._changed}
        self._changed.clear()
        return changed
