"""Declarations in Python: decorated functions in ``functions/*.py`` and ``features/*.py`` of a project.

A decorator only marks a function; the function stays what it is, so that a file of a project can be imported and tested
like any other. Reading a project collects the marks (`collected`), in the order in which they were made.

>>> @function(arguments=["string"], returns="string")
... def initial(name):
...     return name and name[0]
>>> initial("ann")
'a'
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.base.errors import InputError
from headwater.base.feature_registry import feature

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FEATURES", "Declared", "collected", "function"]

FEATURES = "features"
"""The kind of artefact that ``hw.feature`` declares."""
_FUNCTION = "function"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Declared:
    """A decorated function: what it declares, and where it stands."""

    kind: str
    name: str
    options: dict[str, Any]
    file: str
    line: int
    description: str = ""

    @property
    def is_function(self) -> bool:
        """Whether it is a function for SQL, and no artefact."""
        return self.kind == _FUNCTION


_collecting: ContextVar[list[Declared] | None] = ContextVar("collecting", default=None)


@contextmanager
def collected() -> Iterator[list[Declared]]:
    """What is declared inside the block; its features belong to the project, and are not this process's afterwards."""
    found: list[Declared] = []
    token = _collecting.set(found)
    before = {one.name: one for one in feature}
    try:
        yield found
    finally:
        _collecting.reset(token)
        new = [one for one in feature if before.get(one.name) is not one]
        found += [_declared(FEATURES, one.function, one.name, {**one.options, "function": one.function}) for one in new]
        for one in new:
            feature.put_back(one.name, before.get(one.name))


def _declared(kind: str, made: Callable[..., Any], name: str | None, options: dict[str, Any]) -> Declared:
    code = inspect.unwrap(made).__code__
    description = (inspect.getdoc(made) or "").split("\n\n")[0]
    return Declared(kind, name or made.__name__, options, code.co_filename, code.co_firstlineno, description)


def function(
    *,
    arguments: Sequence[pa.DataType | str],
    returns: pa.DataType | str,
    name: str | None = None,
    vectorised: bool = False,
    deterministic: bool = True,
    version: str = "",
) -> Callable[[F], F]:
    """Let the views of a project call a Python function by its name; the arguments are those of `Lake.function`.

    >>> import headwater as hw
    >>> @hw.function(arguments=["double"], returns="double")
    ... def cents(amount):
    ...     return None if amount is None else round(amount * 100)
    >>> cents(1.5)
    150
    """
    if isinstance(arguments, str):
        raise InputError.bad_argument("arguments", arguments, "a list of types")
    options = {
        "arguments": list(arguments),
        "returns": returns,
        "vectorised": vectorised,
        "deterministic": deterministic,
        "version": version,
    }

    def mark(made: F) -> F:
        found = _collecting.get()
        if found is not None:
            found.append(_declared(_FUNCTION, made, name, {**options, "function": made}))
        return made

    return mark
