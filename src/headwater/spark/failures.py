"""Errors of tasks, as the errors that they are.

A task that finds something wrong raises a typed error, as everything does. Spark hands it to the driver as text, inside
a stack trace. So the error travels in that text, between two marks, and the driver takes it out again: the caller sees
the same error as if the work had been done in this process.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from headwater.base import errors
from headwater.base.errors import Action, HeadwaterError, SetupError

__all__ = ["TaskError", "carried", "packed", "told"]

# As pyspark puts it in the driver, and Python in a task.
_NOT_INSTALLED = re.compile(r"(\w+) (?:>= \S+ )?must be installed")
_NO_MODULE = re.compile(r"No module named '(headwater|numba|numpy|pandas|polars|pyarrow|obstore|duckdb|sqlglot)\b")
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\].*?version: (\d+\.\d+) than that in driver: (\d+\.\d+)")
_MARK = re.compile(r"headwater\[([A-Za-z0-9+/=]+)\]")


class TaskError(RuntimeError):
    """A typed error on its way from a task; its text ends with the error itself."""


@contextmanager
def carried() -> Iterator[None]:
    """In a task: typed errors leave it in a form that `told` can read."""
    try:
        yield
    except HeadwaterError as error:
        raise TaskError(packed(error)) from None


def packed(error: HeadwaterError) -> str:
    """A typed error as the text that it travels in: what people read, and the error itself for `told`."""
    advice = [part if isinstance(part, str) else part.as_dict() for part in error.advice]
    facts = {
        "kind": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "where": error.where,
        "advice": advice,
    }
    inner = base64.b64encode(json.dumps(facts).encode()).decode()
    return f"{error}\nheadwater[{inner}]"


@contextmanager
def told() -> Iterator[None]:
    """On the driver: an error that a task raised is raised here.

    >>> from headwater.base.errors import InputError
    >>> try:
    ...     with told(), carried():
    ...         raise InputError.bad_argument("k", 0, "at least 1")
    ... except InputError as error:
    ...     print(error.code)
    E1001
    """
    try:
        yield
    except HeadwaterError:
        raise
    except Exception as error:
        inner = _within(str(error)) or _missing(error)
        if inner is None:
            raise
        raise inner from None


def _missing(error: Exception) -> SetupError | None:
    """A package that this process, or a task on an executor, cannot import."""
    if isinstance(error, ImportError) and (found := _NOT_INSTALLED.search(str(error))) is not None:
        return SetupError.missing_package(found[1].lower(), "Spark", extra="spark")
    if not type(error).__module__.startswith(("pyspark", "py4j")):
        return None
    if (found := _OTHER_PYTHON.search(str(error))) is not None:
        return SetupError.executors_python(found[1], found[2])
    found = _NO_MODULE.search(str(error))
    return None if found is None else SetupError.executors_lack(found[1])


def _within(text: str) -> HeadwaterError | None:
    """The error in a text. It is made from its facts: a text may hold anything, since rows may be quoted in it."""
    found = _MARK.search(text)
    if found is None:
        return None
    try:
        facts = json.loads(base64.b64decode(found[1]))
        kind = getattr(errors, str(facts.pop("kind")), None)
        if isinstance(kind, type) and issubclass(kind, HeadwaterError):
            advice = tuple(part if isinstance(part, str) else Action.from_dict(part) for part in facts["advice"])
            return kind(facts["code"], facts["message"], where=facts["where"], hint=advice)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return None
