r"""Names of fields, as they are written: dots make a path, and anything else can be had by a backslash or backquotes.

``attrs.user`` and ``attrs.`user``` are the same; ``attrs.k8s\.node`` and ``attrs.`k8s.node``` have a dot inside a name.
"""

from __future__ import annotations

import re

from headwater.search.language.path import escape_name
from headwater.search.language.source import FIELD, NAME, Source, unescape

__all__ = ["read_field", "read_name"]

_OTHER_LEAVES = ("'", "/", "<", ">")
_PIECE = re.compile(r"(\\.)|`((?:[^`]|``)*+)`|([*?])|([^\\`*?]++)", re.DOTALL)


def read_field(source: Source, at: int) -> tuple[str | None, int]:
    """The field that is named at ``at`` with its colon, and the offset after it; None where there is none."""
    # What begins with one of these is a leaf; and to look for a colon after each of many quotes would take quadratic
    # time.
    found = None if source.char(at) in _OTHER_LEAVES else FIELD.match(source.text, at)
    if found is None:
        return None, at
    return _path(source, at, found.end(), found.group(1)), found.end()


def read_name(source: Source, at: int) -> tuple[str | None, int]:
    """The name of a field that is used as a value, as in ``_exists_:name``; None where there is none."""
    quoted = source.enclosed(at) if source.char(at) == '"' else None
    if quoted is not None and quoted.group(1):
        return unescape(quoted.group(1)).replace("\\", "\\\\"), quoted.end()
    found = NAME.match(source.text, at)
    if found is None:
        return None, at
    return _path(source, at, found.end(), found.group()), found.end()


def _path(source: Source, start: int, end: int, raw: str) -> str | None:
    pieces: list[str] = []
    for escaped, quoted, wild, plain in _PIECE.findall(raw):
        if wild:
            hint = "name one field: `title:word`; for a name with that character: `a\\*b:word`"
            source.refuse(start, end, f"`{raw[:40]}` is a pattern, and a field is named without one", hint)
            return None
        if escaped:
            pieces.append(escaped if escaped in ("\\\\", "\\.") else escaped[1:])
        else:
            pieces.append(escape_name(quoted.replace("``", "`")) or plain)
    if not any(pieces):
        source.refuse(start, end, "the name of the field is empty", "name a field: `title:word`")
        return None
    return "".join(pieces)
