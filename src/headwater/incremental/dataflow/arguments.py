"""Checking what users give to a circuit: a wrong kind of thing is an error where it is written,
and not somewhere in a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.base.errors import InputError
from headwater.incremental.store import Store

__all__ = ["a_schema", "a_store", "names", "pairs", "texts", "whole"]


def texts(where: str, *given: object) -> None:
    """Each of them is a text."""
    for one in given:
        if not isinstance(one, str):
            raise InputError.bad_argument(where, one, "text")


def names(where: str, given: object) -> list[str]:
    """One name, or several."""
    found = _listed(given)
    texts(where, *found)
    return found


def pairs(where: str, given: object) -> list[str | tuple[str, str]]:
    """Names, or pairs of names."""
    found = _listed(given)
    for one in found:
        if not isinstance(one, str) and not (
            isinstance(one, tuple) and len(one) == 2 and all(isinstance(n, str) for n in one)
        ):
            raise InputError.bad_argument(where, one, "the name of a column, or a pair (mine, theirs)")
    return found


def _listed(given: object) -> list[Any]:
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def whole(where: str, given: object, least: int | None = None) -> int:
    """A whole number that a word of the machine can hold."""
    if isinstance(given, bool) or not isinstance(given, int) or abs(given) >= 2**62:
        raise InputError.bad_argument(where, given, "a whole number")
    if least is not None and given < least:
        raise InputError.bad_argument(where, given, f"a whole number of at least {least}")
    return given


def a_schema(where: str, given: object) -> None:
    """An Arrow schema."""
    if not isinstance(given, pa.Schema):
        raise InputError.bad_argument(where, given, "an Arrow schema: pa.schema([('id', pa.int64())])")


def a_store(given: object) -> None:
    """A store of state."""
    if not isinstance(given, Store):
        raise InputError.bad_argument("store", given, "a Store: with Store(folder) as store: …")
