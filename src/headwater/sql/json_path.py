"""Paths of get_json_object: ``$.a.b``, ``$['a'].b[0]``, ``$.a[*].b``.

A name is looked for in an object and takes its first field of that name that is not null; an index in an array. ``[*]``
takes all elements of an array that have what follows: none gives null, one gives that value, several an array; behind
an index it is always an array. A text that is found alone loses its quotes; inside an array it keeps them.

Paths with two stars, with ``.*`` or with blanks have rules of their own in Spark, and are refused.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from headwater.sql.json_text import MALFORMED, Pairs, read_json, sound, write_json
from headwater.sql.nodes import Refused

__all__ = ["found_text", "steps_of"]

Step = str | int | None
_STEP = re.compile(r"\.([^.\[\]\s'*?]+)|\[([0-9]{1,9})\]|\['([^'?*\s]+)'\]|(\[\*\])")


@functools.lru_cache(maxsize=256)
def steps_of(path: str) -> tuple[Step, ...]:
    """Names, indices, and None for ``[*]``.

    >>> steps_of("$.a[0]['b'][*]")
    ('a', 0, 'b', None)
    """
    steps: list[Step] = []
    at = 1
    while path.startswith("$") and at < len(path) and (match := _STEP.match(path, at)):
        name, index, other, star = match.groups()
        steps.append(None if star else int(index) if index else name or other)
        at = match.end()
    if not path.startswith("$") or at < len(path) or steps.count(None) > 1:
        raise Refused(f"the JSON path {path!r}", "write $.name, ['name'], [0] and at most one [*]")
    return tuple(steps)


def found_text(text: str, path: str) -> str | None:
    """What get_json_object gives.

    >>> found_text('{"a": [{"b": "x"}, {"b": 2}]}', "$.a[*].b"), found_text('{"a": [{"b": "x"}]}', "$.a[0].b")
    ('["x",2]', 'x')
    """
    value = read_json(text)
    if value is MALFORMED:
        return None
    return _found(value, steps_of(path), raw=True, astral=False)


def _found(value: Any, steps: tuple[Step, ...], *, raw: bool, astral: bool) -> str | None:
    if not steps:
        return sound(value) if raw and isinstance(value, str) else write_json(value, astral=astral)
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if isinstance(value, Pairs):
            for name, inner in value:
                if name == step and inner is not None:
                    found = _found(inner, rest, raw=raw, astral=astral)
                    if found is not None:
                        return found
        return None
    if not isinstance(value, list) or isinstance(value, Pairs):
        return None
    if step is None:
        # In its own buffer, of characters, unless it stands inside an array already.
        texts = [t for e in value if (t := _found(e, rest, raw=False, astral=raw or astral)) is not None]
        return texts[0] if raw and len(texts) == 1 else f"[{','.join(texts)}]" if texts else None
    if step >= len(value):
        return None
    starred = bool(rest) and rest[0] is None
    return _found(value[step], rest, raw=raw and not starred, astral=astral)
