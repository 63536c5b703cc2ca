"""Overrides: environment variables that set values of a configuration.

With the prefix ``HEADWATER_SERVE__``, ``HEADWATER_SERVE__SERVER__PORT=9000`` sets ``server.port``: behind it come the
keys of the path, in any case, with two underscores between them. The names of tables and columns have whatever is no
letter or digit replaced by ``_``; they have to be in the file. An item of a list is named by its number, from 0. The
value is read as YAML where a number, a boolean, a list or a mapping is wanted, and taken as it is where a string is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_origin

from pydantic import BaseModel

from headwater.base.config.document import Document, Path, Unresolved, dotted, parse_scalar, parse_value
from headwater.base.config.structure import fields_at, type_at, wants_text
from headwater.base.errors import ConfigError

__all__ = ["apply_overrides", "resolve_scalars"]


def apply_overrides(document: Document, root: type[BaseModel], environ: Mapping[str, str], prefix: str) -> None:
    """Set what the variables say, shorter paths first; raises for a variable that names nothing."""
    for name in sorted(n for n in environ if n.startswith(prefix)):
        parts = name[len(prefix) :].split("__")
        path = _resolved(document, root, name, parts)
        document.variables[path] = name
        _set(document.value, path, _read(root, path, environ[name], name))


def resolve_scalars(value: Any, root: type[BaseModel], path: Path = ()) -> Any:
    """The values with each scalar that was put together from variables as what is wanted in its place."""
    if isinstance(value, Unresolved):
        return str(value) if wants_text(root, path) else parse_scalar(value)
    if isinstance(value, dict):
        return {key: resolve_scalars(one, root, (*path, key)) for key, one in value.items()}
    if isinstance(value, list):
        return [resolve_scalars(one, root, (*path, at)) for at, one in enumerate(value)]
    return value


def _read(root: type[BaseModel], path: Path, text: str, name: str) -> Any:
    wanted = type_at(root, path)
    structured = get_origin(wanted) in (dict, list) or (isinstance(wanted, type) and issubclass(wanted, BaseModel))
    if structured:
        return parse_value(text, f"environment variable {name}")
    return text if wants_text(root, path) else parse_scalar(text)


def _resolved(document: Document, root: type[BaseModel], name: str, parts: list[str]) -> Path:
    """The path that the parts of a variable's name mean."""
    path: Path = ()
    for part in parts:
        here = _value_at(document.value, path)
        wanted = type_at(root, path)
        known = fields_at(root, path)
        if get_origin(wanted) is dict:
            known = [str(one) for one in here] if isinstance(here, dict) else []
            if not fields_at(root, (*path, "*")) and not any(_same(one, part) for one in known):
                known = [*known, part]  # a mapping of free names
        elif get_origin(wanted) is list:
            known = [str(at) for at in range(len(here))] if isinstance(here, list) else []
        found = next((one for one in known if _same(one, part)), None)
        if found is None:
            raise ConfigError.unknown_variable(name, part.lower(), known, dotted(path))
        path = (*path, int(found) if get_origin(wanted) is list else found)
    return path


def _same(known: str, part: str) -> bool:
    return re.sub(r"\W", "_", known).lower() == part.lower()


def _value_at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
        else:
            return None
    return value


def _set(value: Any, path: Path, new: Any) -> None:
    for step in path[:-1]:
        if isinstance(value, list):
            value = value[int(step)]
            continue
        if not isinstance(value.get(step), dict | list):
            value[step] = {}  # an option of something that the file leaves out, or has as a scalar
        value = value[step]
    value[path[-1]] = new
