"""Structure: what a configuration may hold at a path, as far as its values and messages depend on it.

The models say what is valid. Before that, a variable's text has to become a value of the type that is wanted, a name in
a variable has to be found among the fields, and a message has to know whether a value is a secret.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

__all__ = ["fields_at", "is_secret", "type_at", "wants_text"]

Path = Sequence[str | int]
_RESOLVED = (int, float, bool)


def type_at(root: type[BaseModel], path: Path) -> Any:
    """The type of what lies at a path; None for what may not be there."""
    found: Any = root
    for step in path:
        found = _inside(found, step)
    return found


def fields_at(root: type[BaseModel], path: Path) -> list[str]:
    """The keys that a mapping at a path may have; none where they are free, or where it is no mapping."""
    found = type_at(root, path)
    return list(_fields(found)) if _is_model(found) else []


def wants_text(root: type[BaseModel], path: Path) -> bool:
    """Whether a scalar at a path is taken as the string that it is, and not read as a number or a boolean."""
    return type_at(root, path) not in _RESOLVED


def is_secret(root: type[BaseModel], path: Path) -> bool:
    """Whether what lies at a path, or around it, may not be shown."""
    for length in range(1, len(path) + 1):
        parent, name = type_at(root, path[: length - 1]), path[length - 1]
        if _is_model(parent) and name in (known := _fields(parent)) and not known[str(name)].repr:
            return True
        if type_at(root, path[:length]) is SecretStr:
            return True
    return False


def _inside(found: Any, step: str | int) -> Any:
    if _is_model(found):
        return _plain(known[str(step)].annotation) if step in (known := _fields(found)) else None
    arguments = get_args(found)
    if get_origin(found) is dict:
        return _plain(arguments[1])
    if get_origin(found) is list:
        return _plain(arguments[0])
    return None


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model, by the keys that a file has for them."""
    return {one.alias or name: one for name, one in model.model_fields.items()}


def _plain(found: Any) -> Any:
    """Without what is said about a type, and without None."""
    while get_origin(found) is Annotated:
        found = get_args(found)[0]
    if get_origin(found) in (Union, types.UnionType):
        given = [one for one in get_args(found) if one is not type(None)]
        return _plain(given[0]) if len(given) == 1 else None
    return found


def _is_model(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, BaseModel)
