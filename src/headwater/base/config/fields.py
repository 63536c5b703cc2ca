"""Fields: the kinds of values that a configuration has beside plain strings, numbers and booleans.

Each is read from what people write ("5m", "64 MiB", a path beside the file) and from what Python code passes (a
timedelta, a number of bytes, a Path). A value that does not fit raises `expected`, which says what would; who shows it
decides whether the value itself may be shown.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from headwater.base.errors import InputError
from headwater.base.spans import Months, length_of

__all__ = [
    "CONTRADICTION",
    "EXPECTED",
    "Bytes",
    "Duration",
    "FolderPath",
    "Location",
    "Model",
    "contradicts",
    "expected",
]

EXPECTED, CONTRADICTION = "expected", "contradiction"
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(i?)(b?)", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


class Model(BaseModel):
    """What all parts of a configuration have in common: no unknown keys, no conversions, no changes,
    no values in errors.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        validate_default=False,
    )


def expected(what: str) -> NoReturn:
    """Refuse a value: ``what`` would be right."""
    raise PydanticCustomError(EXPECTED, "expected {what}", {"what": what})


def contradicts(message: str, hint: str, at: str | None = None) -> NoReturn:
    """Refuse values that do not go together; ``at`` is the key to point to."""
    raise PydanticCustomError(CONTRADICTION, "{message}; {hint}", {"message": message, "hint": hint, "at": at or ""})


def _duration(value: Any) -> Any:
    examples = "a length of time with its unit, like `30s`, `5m` or `1h30m`"
    if isinstance(value, timedelta):
        found: timedelta | Months = value
    elif isinstance(value, str):
        try:
            found = length_of(value)
        except InputError as e:
            _, _, why = (e.hint or "").partition("; ")
            expected(f"{examples}; {why}" if why else examples)
    else:
        expected(examples)
    if isinstance(found, Months):
        expected(f"{examples}; months and years have no fixed length")
    if found <= timedelta(0):
        expected(f"{examples}, of more than nothing")
    return found


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "examples": ["30s", "5m", "1h30m"], "description": "a length of time"}),
]
"""A length of time, longer than nothing."""


def _bytes(value: Any) -> Any:
    examples = "a number of bytes, like `65536`, `32 KiB` or `64MiB`"
    if isinstance(value, str):
        found = _SIZE.fullmatch(value.strip())
        if found is None or (found[3] and not found[2]):
            expected(examples)
        binary = found[3] or not found[4]
        return int(found[1]) * (1024 if binary else 1000) ** _POWERS[found[2].lower()]
    if isinstance(value, bool) or not isinstance(value, int):
        expected(examples)
    return value


Bytes = Annotated[
    int,
    BeforeValidator(_bytes),
    Field(ge=1),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "examples": ["32 KiB", "64MiB"]}]}),
]
"""A number of bytes."""


def _path(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        expected("a path")
    beside = (info.context or {}).get("folder")
    found = Path(value).expanduser()
    return Path(os.path.abspath(Path(beside) / found)) if beside is not None else found


FolderPath = Annotated[Path, BeforeValidator(_path), WithJsonSchema({"type": "string"})]
"""A path of this machine; one that is not absolute begins at the folder of the configuration file."""


def _location(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str) and "://" in value:
        return value
    return str(_path(value, info))


Location = Annotated[str, BeforeValidator(_location), WithJsonSchema({"type": "string"})]
"""A path, as above, or a URL."""
