"""Keys: which rows are meant by ``customer_id=1234``.

A key names some columns of a table with a value for each. It is given as a mapping, or as text (``id=7``,
``region='x', id=7``); the values take the types that the columns have, and a null is written as ``null``. The same key
is a condition for reading a table, with which files are skipped, and a mask over rows that are at hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import InputError
from headwater.base.schema import spark_type
from headwater.lake.snapshot import Snapshot
from headwater.sql.conjuncts import Conjunct
from headwater.sql.fragment import Fragment

__all__ = ["Key", "KeyText"]

KeyText = str | Mapping[str, object]
"""What people give as a key: ``"customer_id=1234"``, or ``{"customer_id": 1234}``."""

Mask = npt.NDArray[np.bool_]
_EXPECTED = 'columns with their values, such as "customer_id=1234" or {"customer_id": 1234}'
_PAIR = re.compile(r"\s*(?:`(?P<quoted>[^`]+)`|(?P<name>[\w.]+))\s*=\s*(?P<value>'(?:[^']|'')*'|[^,]*?)\s*(?:,|$)")


@dataclass(frozen=True, slots=True)
class Key:
    """Columns of a table, each with the value that is meant."""

    values: Mapping[str, pa.Scalar]

    @classmethod
    def of(cls, given: KeyText, base: Snapshot) -> Key:
        """The key of a table's rows that somebody has written.

        >>> import headwater as hw, tempfile
        >>> t = hw.connect(tempfile.mkdtemp()).write("t", [{"id": 1, "at": "a"}])
        >>> print(Key.of("ID = 7, at='it''s'", t.snapshot))
        id=7, at='it''s'
        """
        pairs = _parsed(given) if isinstance(given, str) else given
        if not isinstance(pairs, Mapping) or not pairs:
            raise InputError.bad_argument("key", given, _EXPECTED)
        values = {}
        for name, value in pairs.items():
            field = base.schema.field(name, base.where)
            values[field.name] = _typed(field.name, value, field.arrow.type)
        return cls(values)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it names."""
        return tuple(self.values)

    @property
    def condition(self) -> Fragment:
        """The condition that its rows meet, in Spark SQL."""
        parts, parameters = [], {}
        for number, (name, value) in enumerate(self.values.items()):
            quoted = "`" + name.replace("`", "``") + "`"
            parts.append(f"{quoted} <=> :key{number}")
            parameters[f"key{number}"] = value.as_py()
        return Fragment(" AND ".join(parts), parameters)

    @property
    def conjuncts(self) -> list[Conjunct]:
        """The same for skipping files."""
        return [
            Conjunct(name, "=", (value.as_py(),)) if value.is_valid else Conjunct(name, "is null")
            for name, value in self.values.items()
        ]

    def mask(self, rows: pa.Table | pa.RecordBatch) -> Mask:
        """Which rows have it."""
        found: Mask = np.ones(rows.num_rows, dtype=np.bool_)
        for name, value in self.values.items():
            column = rows.column(name)
            hit = pc.equal(column, value.cast(column.type)) if value.is_valid else pc.is_null(column)
            found &= pc.fill_null(hit, False).to_numpy(zero_copy_only=False)
        return found

    def renamed(self, names: Mapping[str, str]) -> Key:
        """The same values under the names that other rows have for the columns."""
        return Key({names[name]: value for name, value in self.values.items()})

    def as_dict(self) -> dict[str, object]:
        """For ``--json``."""
        return {name: value.as_py() for name, value in self.values.items()}

    def __str__(self) -> str:
        return ", ".join(f"{name}={_spelled(value)}" for name, value in self.values.items())


def _parsed(text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None or match.end() == at:
            raise InputError.bad_argument("key", text, _EXPECTED)
        value = match["value"]
        quoted = len(value) > 1 and value[0] == value[-1] == "'"
        name = match["quoted"] or match["name"]
        found[name] = value[1:-1].replace("''", "'") if quoted else None if value.lower() == "null" else value
        at = match.end()
    return found


def _typed(name: str, value: object, kind: pa.DataType) -> pa.Scalar:
    types = pa.types
    if types.is_nested(kind) or types.is_null(kind):
        raise InputError.bad_argument("key", name, f"columns of plain types; `{name}` is {spark_type(kind)}")
    try:
        if isinstance(value, pa.Scalar):
            return value.cast(kind)
        if isinstance(value, str) and not (types.is_string(kind) or types.is_binary(kind)):
            return pa.scalar(value).cast(kind)
        return pa.scalar(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, OverflowError):
        expected = f"a value of `{name}`, which is {spark_type(kind)}"
        raise InputError.bad_argument("key", f"{name}={value}", expected) from None


def _spelled(value: pa.Scalar) -> str:
    if not value.is_valid:
        return "null"
    plain = value.as_py()
    return "'" + plain.replace("'", "''") + "'" if isinstance(plain, str) else str(plain)
