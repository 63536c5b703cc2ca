"""What a feature table may not say: the same rows have to come of the same tables, whenever they are computed.

A stream may read the clock; a feature table that does would change though no table does, and what was computed again
would not fit what stays. Constants of the clock are plain times by the time that a plan runs, so they are looked for
in its texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from headwater.base.errors import HeadwaterError, UnsupportedError
from headwater.sql.tokens import Token, tokenize
from headwater.timeseries.node import Node

__all__ = ["check_constant"]

_CLOCKS = {"curdate", "current_date", "current_timestamp", "localtimestamp", "now"}
_BARE = {"current_date", "current_timestamp"}


def check_constant(plan: Node) -> None:
    """Raise for a plan that reads the clock."""
    for node in _nodes(plan):
        columns = {name.lower() for below in node.inputs for name in below.schema.names}
        for text in _texts(node):
            for name in _clocks(text, columns):
                why, hint = (
                    "it changes though no table does",
                    "compare with a column, or filter where the rows are read",
                )
                raise UnsupportedError.not_maintained(text, f"{name}()", why, hint, text.lower().find(name))


def _clocks(text: str, columns: set[str]) -> Iterator[str]:
    try:
        tokens = list(tokenize(text))
    except HeadwaterError:  # it is no SQL
        return
    for at, token in enumerate(tokens):
        word = token.text.lower()
        if token.kind != "word" or word not in _CLOCKS:
            continue
        if _is(tokens, at + 1, "(") or (word in _BARE and word not in columns):
            yield word


def _is(tokens: list[Token], at: int, text: str) -> bool:
    return at < len(tokens) and tokens[at].text == text


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for below in node.inputs:
        yield from _nodes(below)


def _texts(value: Any) -> Iterator[str]:
    """The texts in the fields of a node, without those of its inputs."""
    for f in fields(value):
        yield from _inside(getattr(value, f.name))


def _inside(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _inside(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _inside(one)
    elif is_dataclass(value) and not isinstance(value, Node | type):
        yield from _texts(value)
