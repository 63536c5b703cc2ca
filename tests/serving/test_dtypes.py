"""Every type that an online table can hold comes back as it went in, as a value and as a key; others are refused by name."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.serving.tables import version_of

from headwater.base.errors import InputError, SchemaError
from headwater.serving.dtypes import dtype_name, parse_dtype, stored_type

VALUES: dict[str, list[Any]] = {
    "utf8": ["", "a", "Zoë", "日本語", "x" * 12, "y" * 13, "long " * 50],
    "binary": [b"", b"\0", b"\xff" * 12, b"\0" * 13, bytes(range(256))],
    "bool": [True, False],
    **{f"int{b}": [0, 1, -1, 2 ** (b - 1) - 1, -(2 ** (b - 1))] for b in (8, 16, 32, 64)},
    **{f"uint{b}": [0, 1, 2**b - 1] for b in (8, 16, 32, 64)},
    "float16": [0.0, -0.0, 1.5, -65504.0, math.inf, -math.inf],
    "float32": [0.0, -0.0, 1.5, 3.4028234663852886e38, 1.401298464324817e-45, math.inf],
    "float64": [0.0, -0.0, 1.5, 1.7976931348623157e308, 5e-324, -math.inf],
    "decimal(38,10)": [Decimal("0E-10"), Decimal("-1.5000000000"), Decimal("9" * 28 + "." + "9" * 10)],
    "decimal(9,2)": [Decimal("0.00"), Decimal("-1234567.89")],
    "date": [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)],
    "timestamp(us,UTC)": [datetime(1, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 1, 2, 3, 456789, tzinfo=UTC)],
    "timestamp(us)": [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29)],
    "timestamp(ns)": [datetime(2024, 2, 29, 1, 2, 3, 456789)],
    "list<float32>": [[], [1.5], [1.0, None, -2.0], list(range(100))],
    "list<int8>": [[], [1], [None], [127, -128]],
    "list<decimal(9,2)>": [[Decimal("1.00"), None]],
}


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back(name: str, nulls: bool, tmp_path: Path) -> None:
    values = [*VALUES[name], *([None] if nulls else [])]
    table = pa.table({"k": range(len(values)), "v": pa.array(values, parse_dtype(name)), "w": range(len(values))})
    version = version_of(table, ["k"], tmp_path)
    asked = [*reversed(range(len(values))), len(values) + 5]
    batch = version.fetch(asked).batch()
    batch.validate(full=True)
    assert batch.schema.field("v").type == parse_dtype(name)
    assert _bits(batch["v"].to_pylist()) == _bits([*reversed(values), None])
    assert batch["w"].to_pylist() == [*reversed(range(len(values))), None]
    assert batch["_found"].to_pylist() == [*[True] * len(values), False]
    assert _bits(version.read().read_all().sort_by("k")["v"].to_pylist()) == _bits(values)


@pytest.mark.parametrize("name", [n for n in VALUES if not n.startswith("list")])
def test_a_key_of_any_type_is_found(name: str, tmp_path: Path) -> None:
    kind = parse_dtype(name)
    values = list(dict.fromkeys(VALUES[name]))  # of 0.0 and -0.0 one stays: they are the same key
    table = pa.table({"k": pa.array(values, kind), "v": range(len(values))})
    version = version_of(table, ["k"], tmp_path)
    for given in (values, pa.array(values, kind), {"k": values}, pa.table({"k": pa.array(values, kind)})):
        assert version.fetch(given).batch()["v"].to_pylist() == list(range(len(values)))
    assert version.fetch([None, values[0]]).batch()["_found"].to_pylist() == [False, True]
    assert sorted(map(str, version.read().read_all()["k"].to_pylist())) == sorted(map(str, values))
    two = version_of(table.append_column("part", pa.array(["x"] * len(values))), ["part", "k"], tmp_path)
    assert two.fetch([("x", v) for v in values]).batch()["v"].to_pylist() == list(range(len(values)))
    assert not any(two.fetch([("y", v) for v in values]).batch()["_found"].to_pylist())


def test_zeros_and_nans_are_one_key_each(tmp_path: Path) -> None:
    quiet, other = np.array([0x7FF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    version = version_of(pa.table({"k": [0.0, quiet], "v": [1, 2]}), ["k"], tmp_path)
    assert version.fetch(np.array([-0.0, other])).batch()["v"].to_pylist() == [1, 2]


@pytest.mark.parametrize("name", VALUES)
def test_names_of_types(name: str) -> None:
    assert dtype_name(parse_dtype(name)) == name
    assert stored_type("c", parse_dtype(name)) == parse_dtype(name)


@pytest.mark.parametrize(
    "name", ["", "int128", "list<utf8>", "list<list<int8>>", "decimal(39,2)", "decimal(2,3)", "map"]
)
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises(InputError, match="dtype"):
        parse_dtype(name)


@pytest.mark.parametrize(
    "kind",
    [pa.struct([("a", pa.int8())]), pa.map_(pa.string(), pa.int8()), pa.list_(pa.string()), pa.null(), pa.time64("us")],
    ids=str,
)
def test_a_type_that_cannot_be_served_is_refused_by_name(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="column `c` has type") as refused:
        stored_type("c", kind)
    assert refused.value.code == "E1701" and "view" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.binary(4), pa.binary()),
        (pa.list_(pa.float32(), 3), pa.list_(pa.float32())),
    ],
    ids=str,
)
def test_forms_of_a_type_are_stored_as_it(given: pa.DataType, kind: pa.DataType) -> None:
    assert stored_type("c", given) == kind


def _bits(values: list[Any]) -> list[Any]:
    """Floats by their sign, too."""
    return [(math.copysign(1, v), v) if isinstance(v, float) else v for v in values]
