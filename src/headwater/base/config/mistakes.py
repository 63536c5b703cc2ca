"""Mistakes: what pydantic finds wrong with a document, as errors that name the line and the nearest key.

A value is shown only if it came from the file itself and its field is no secret; of what ``${…}`` has made, the
reference is shown; of lists and mappings, only that they are such.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from headwater.base.config.document import Document, Path, Unresolved, dotted
from headwater.base.config.fields import CONTRADICTION, EXPECTED
from headwater.base.config.structure import fields_at, is_secret
from headwater.base.errors import ConfigError

__all__ = ["mistakes_of", "raised"]

_TYPES = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list, like `[a, b]`",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "finite_number": "a finite number",
    "date_type": "a date",
}
_BOUNDS = {
    "greater_than": ("more than {}", "gt"),
    "greater_than_equal": ("at least {}", "ge"),
    "less_than": ("less than {}", "lt"),
    "less_than_equal": ("at most {}", "le"),
    "too_short": ("at least {} item", "min_length"),
    "string_too_short": ("a string of at least {} character", "min_length"),
    "string_too_long": ("a string of at most {} characters", "max_length"),
}
_LONGEST = 60


def mistakes_of(error: ValidationError, document: Document, raw: Any, root: type[BaseModel]) -> list[ConfigError]:
    """What is wrong, in the order of the file; ``raw`` is the document's value before scalars were resolved."""
    found = [_mistake(one, document, raw, root) for one in error.errors(include_url=False, include_input=False)]
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def raised(mistakes: list[ConfigError], name: str) -> ConfigError:
    """The error that stands for all of them."""
    if len(mistakes) == 1:
        return mistakes[0]
    lines = [f"{one.where}: {one.message}{f' ({one.hint})' if one.hint else ''}" for one in mistakes]
    return ConfigError.several(lines, sorted({one.code for one in mistakes}), name)


def _mistake(details: Any, document: Document, raw: Any, root: type[BaseModel]) -> tuple[tuple[int, int], ConfigError]:
    kind, given = details["type"], details.get("ctx") or {}
    steps = list(details["loc"])
    is_key = bool(steps) and steps[-1] == "[key]"
    path: Path = tuple(steps[:-1] if is_key else steps)
    if kind == CONTRADICTION and given["at"]:
        path = (*path, given["at"])
    points_to_key = is_key or kind in ("extra_forbidden", CONTRADICTION)
    order = _order(document, path, key=points_to_key)
    where = document.where(path, key=points_to_key)
    if kind == "extra_forbidden":
        return order, ConfigError.unknown_key(str(path[-1]), fields_at(root, path[:-1]), where)
    if kind == "missing":
        return order, ConfigError.missing_key(dotted(path[:-1]) or document.name, str(path[-1]), where)
    if kind == CONTRADICTION:
        return order, ConfigError.contradiction(f"`{dotted(steps)}`: {given['message']}", where, given["hint"])
    wanted = _wanted(kind, given, str(details["msg"]))
    if is_key:
        what = f"`{path[-1]}` cannot be a key of `{dotted(path[:-1])}`"
        return order, ConfigError.bad_value(what, wanted, where)
    value = _shown(_value_at(raw, path), secret=is_secret(root, path))
    return order, ConfigError.bad_value(f"`{dotted(path)}` is {value}", wanted, where)


def _wanted(kind: str, given: dict[str, Any], message: str) -> str:
    if kind == EXPECTED:
        return str(given["what"])
    if kind in _BOUNDS:
        text, name = _BOUNDS[kind]
        return text.format(given[name])
    return _TYPES.get(kind, message[:1].lower() + message[1:])


def _shown(value: Any, *, secret: bool) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if secret:
        return "a secret that is not shown"
    if isinstance(value, Unresolved):
        return f"what `{value.source}` stands for"
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _value_at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return value
    return value


def _order(document: Document, path: Path, *, key: bool) -> tuple[int, int]:
    if key and path in document.keys_at:
        return document.keys_at[path]
    for length in range(len(path), -1, -1):
        if path[:length] in document.values_at:
            return document.values_at[path[:length]]
    return (0, 0)
