r"""The name of a field, as one string that does not lose where its parts end.

A field may be inside JSON: ``attrs.user`` is the key `user` of the column `attrs`. Keys may themselves hold dots. So a
path is the names joined by dots, where a dot or a backslash that belongs to a name has a backslash before it. That is
also how tantivy writes the path of a JSON field.

>>> join_path(["attrs", "k8s.node"])
'attrs.k8s\\.node'
>>> split_path("attrs.k8s\\.node")
('attrs', 'k8s.node')
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["escape_name", "is_path", "join_path", "split_path"]

_PATH = re.compile(r"(?:[^\\]|\\[\\.])++", re.DOTALL)
_PIECE = re.compile(r"\\(.)|(\.)|([^\\.]+)", re.DOTALL)


def escape_name(name: str) -> str:
    """One name, as it stands in a path."""
    return name.replace("\\", "\\\\").replace(".", "\\.")


def join_path(names: Iterable[str]) -> str:
    """The path of these names, the outermost first."""
    return ".".join(map(escape_name, names))


def split_path(path: str) -> tuple[str, ...]:
    """The names that a path is made of."""
    names: list[list[str]] = [[]]
    for escaped, dot, plain in _PIECE.findall(path):
        if dot:
            names.append([])
        else:
            names[-1].append(escaped or plain)
    return tuple(map("".join, names))


def is_path(text: str) -> bool:
    """Whether a string is a path: not empty, and with backslashes only before dots and backslashes."""
    return _PATH.fullmatch(text) is not None
