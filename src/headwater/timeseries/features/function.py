"""The function of a feature table: what it is known by, and where a process finds it.

A definition names the function (``module:name``) and keeps its fingerprint: a hash of its text and of the plan that it
makes, so that a constant that it reads from its module counts too. In a process the function is the one that was given
to ``lake.features``, the one that was declared under the table's name (`headwater.base.feature_registry`), or the one
that can be imported. A function that lives in a notebook, or inside another one, cannot be.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import pyarrow as pa

from headwater.base.errors import NotFoundError
from headwater.base.feature_registry import feature
from headwater.base.kinds import words_of
from headwater.sql.functions.user import source_text
from headwater.timeseries.node import Node
from headwater.timeseries.sources.delta import DeltaSource

__all__ = ["Build", "fingerprint_of", "forget", "function_at_hand", "name_of", "remember"]

Build = Callable[[Any], Any]

_NO_REPR: Any = object.__repr__
_given: dict[tuple[str, str], Build] = {}


def remember(url: str, name: str, build: Build) -> None:
    """Let this process know the function of a lake's feature table."""
    _given[url, name] = build


def forget(url: str, name: str) -> None:
    """The feature table is no more."""
    _given.pop((url, name), None)


def function_at_hand(url: str, name: str, path: str) -> Build:
    """The function of a feature table; an error if this process cannot have it."""
    found = _given.get((url, name))
    if found is not None:
        return found
    declared = feature.get(name)
    if declared is not None:
        return declared.function
    module, _, inner = path.partition(":")
    if module != "__main__" and inner and "<" not in inner:
        try:
            there: Any = importlib.import_module(module)
            for part in inner.split("."):
                there = getattr(there, part)
        except (ImportError, AttributeError):
            there = None
        if callable(there):
            made: Build = there
            return made
    raise NotFoundError.feature_function(name, path, words_of("features"))


def name_of(build: Build) -> str:
    """Where a function can be imported from."""
    return f"{getattr(build, '__module__', '')}:{getattr(build, '__qualname__', type(build).__qualname__)}"


def fingerprint_of(build: Build, plan: Node) -> str:
    """A hash of a function's text and of the plan that it makes, whatever versions its sources have."""
    parts = [source_text(build), _told(plan)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _told(value: Any) -> str:
    """A part of a plan as text, the same in every process."""
    if isinstance(value, DeltaSource):
        return f"table {value.table.name}({', '.join(value.names)})"
    if isinstance(value, pa.Table):
        sink = hashlib.sha256()
        for batch in value.combine_chunks().to_batches():
            sink.update(batch.serialize())
        return f"rows({value.schema.to_string()}, {sink.hexdigest()})"
    if is_dataclass(value) and not isinstance(value, type):
        inner = ", ".join(f"{f.name}={_told(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_told(k)}: {_told(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(map(_told, value)) + ")"
    if callable(value):
        return source_text(value)
    if type(value).__repr__ is _NO_REPR:
        return f"{type(value).__qualname__}({_told(vars(value) if hasattr(value, '__dict__') else {})})"
    return repr(value)
