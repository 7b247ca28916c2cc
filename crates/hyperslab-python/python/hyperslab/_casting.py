"""Casts values to the type of an array. Values that do not fit are rejected, never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab._errors import InvalidError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def fit(values: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """``values`` as an array of ``dtype``, by NumPy's ``same_kind`` rule.

    Integers may change width and sign if no value changes; likewise text and times. Floats may lose precision, but must not
    become infinite.
    """
    given = np.asarray(values)
    if given.dtype == dtype or dtype.kind == "O" or given.size == 0:
        return np.asarray(given, dtype)
    integers = given.dtype.kind in "biu" and dtype.kind in "iu"
    if given.dtype.kind == "O":
        # Python's own numbers and strings. NumPy rejects what it cannot convert.
        try:
            return _unchanged(np.array(values), np.asarray(values, dtype), dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidError(f"the values do not fit into {dtype}: {error}") from None
    if not integers and not np.can_cast(given.dtype, dtype, "same_kind"):
        raise InvalidError(f"values of type {given.dtype} do not fit into {dtype}; convert them first")
    with np.errstate(over="ignore", invalid="ignore"):
        return _unchanged(given, given.astype(dtype), dtype)


def convert(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """``values`` as an array of the type that was asked for, whatever its kind, if no value changes."""
    if values.dtype.kind == "O":
        return fit(values, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            return _unchanged(values, values.astype(dtype), dtype)
        except (TypeError, ValueError) as error:
            raise InvalidError(f"the values do not fit into {dtype}: {error}") from None


def _unchanged(given: NDArray[Any], cast: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind in "fc" and given.dtype.kind in "fciub":
        changed = np.isfinite(given) & ~np.isfinite(cast)
    elif given.dtype.names is not None:
        changed = np.zeros(given.shape, bool)
    elif dtype.kind in "Mm" and given.dtype.kind in "Mm":
        # In the type given, because values that overflowed compare equal in the other.
        changed = (cast.astype(given.dtype) != given) & ~np.isnat(given)
    elif dtype.kind in "SU" and given.dtype.kind in "SU":
        changed = np.asarray(cast.astype(given.dtype) != given)
    else:
        changed = np.asarray(cast != given)
    if changed.any():
        value = given[changed].flat[0]
        raise InvalidError(f"{value!r} does not fit into {dtype}")
    return cast
