"""Interpolation: ``${NAME}`` and ``${NAME:-default}`` inside a string, as shells and Compose files have them.

A default stands for a variable that is unset or empty, and is taken literally: it holds no references. ``$${`` is
``${``. A reference without a default to a variable that is unset is an error, since an empty password or path is worse
than a server that does not start.

>>> interpolate("s3://${BUCKET}/${PREFIX:-features}/$${x}", {"BUCKET": "b"})
's3://b/features/${x}'
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["BadReference", "UnsetVariable", "has_references", "interpolate"]

_REFERENCE = re.compile(r"\$(\$?)\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?")


class UnsetVariable(Exception):
    """A variable that has neither a value nor a default."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class BadReference(Exception):
    """``${`` that begins no reference."""


def has_references(text: str) -> bool:
    """Whether there is anything to replace."""
    return "${" in text


def interpolate(text: str, environ: Mapping[str, str]) -> str:
    """The text with its references replaced."""

    def value(found: re.Match[str]) -> str:
        escaped, name, default = found.groups()
        if escaped:
            return found[0][1:]
        if name is None:
            raise BadReference
        if default is not None:
            return environ.get(name) or default
        if name not in environ:
            raise UnsetVariable(name)
        return environ[name]

    return _REFERENCE.sub(value, text)
