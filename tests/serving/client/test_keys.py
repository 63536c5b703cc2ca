"""Keys in every form are the same Arrow stream to a server."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import InputError
from headwater.serving.client.key_frame import key_body, rows_body
from headwater.serving.frame_reading import FrameReader, read_batches


def sent(keys: Any, names: tuple[str, ...] = ()) -> pa.Table:
    body = key_body(keys, names)
    for read in (read_batches(body), FrameReader().read(body)):  # a server takes it
        assert read is not None
    found = pa.ipc.open_stream(body).read_all()
    found.validate(full=True)
    return found


@given(st.lists(st.text(max_size=20), max_size=40))
def test_strings(keys: list[str]) -> None:
    assert sent(keys).to_pydict() == {"key": keys}


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 1000, 65_536, 65_537, 70_000])
def test_many_strings(count: int) -> None:
    keys = [f"item_{n * 7}" for n in range(count)]
    assert sent(keys).column(0).to_pylist() == keys


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40))
def test_integers(keys: list[int]) -> None:
    found = sent(keys)
    assert found.to_pydict() == {"key": keys} and found.schema.types == [pa.int64()]


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ([], pa.utf8()),
        ([None], pa.utf8()),
        (["a", None, "\0", "b\0c", ""], pa.utf8()),
        ([1, None], pa.int64()),
        ([2**63], pa.uint64()),
        ([True, False], pa.bool_()),
        ([1.5, 2.0], pa.float64()),
        ([b"\xff", b""], pa.binary()),
        ([date(2026, 1, 2)], pa.date32()),
        ([Decimal("1.50")], pa.decimal128(3, 2)),
        (("a", "b"), pa.utf8()),
        (np.array([1, 2], np.int32), pa.int32()),
        (np.array(["a", "b"]), pa.utf8()),
        (pa.array(["a", "b"]), pa.utf8()),
        (pa.chunked_array([["a"], ["b"]]), pa.utf8()),
        (pa.array(["a", "b"]).dictionary_encode(), pa.utf8()),
        (pd.Series(["a", "b"]), None),
        (pd.Series(["a", "b"], dtype="category"), None),
        (pd.Index([1, 2]), pa.int64()),
        (pl.Series(["a", "b"]), None),
        (pl.Series(["a", "b"], dtype=pl.Categorical), None),
        (range(3), pa.int64()),
        ((str(n) for n in range(3)), pa.utf8()),
        ({"a": None, "b": None}.keys(), pa.utf8()),
        ([np.int64(4), np.int64(5)], pa.int64()),
    ],
)
def test_other_values(keys: Any, kind: pa.DataType | None) -> None:
    kept = list(keys) if hasattr(keys, "gi_frame") else keys
    expected = kept.to_pylist() if isinstance(kept, (pa.Array, pa.ChunkedArray)) else list(kept)
    found = sent(kept)
    assert found.column_names == ["key"] and found.column(0).to_pylist() == expected
    if kind is not None:
        assert found.schema.types == [kind]
    assert not pa.types.is_dictionary(found.schema.types[0])


def test_keys_of_several_columns() -> None:
    expected = {"a": ["x", "y"], "b": [1, 2]}
    table = pa.table(expected)
    frames = (table, table.to_batches()[0], table.to_pandas(), pl.DataFrame(expected), expected)
    assert all(sent(one).to_pydict() == expected for one in frames)
    assert sent([("x", 1), ("y", 2)], ("a", "b")).to_pydict() == expected
    assert sent([["x", 1], ["y", 2]], ("a", "b")).to_pydict() == expected
    assert sent({"a": np.array(["x", "y"]), "b": pa.array([1, 2])}).to_pydict() == expected


@pytest.mark.parametrize(
    "keys",
    ["ann", b"ann", 5, [1, "a"], ["a", 1], ["a", "\ud800"], [{"a": 1}, 2], {"a": [1], "b": [1, 2]}, [object()]],
)
def test_what_are_no_keys(keys: Any) -> None:
    with pytest.raises(InputError) as caught:
        key_body(keys)
    assert caught.value.code == "E1001" and caught.value.hint


def test_rows() -> None:
    expected = [{"id": "a", "x": 1.5}, {"id": "b", "x": None}]
    table = pa.Table.from_pylist(expected)
    for rows in (table, table.to_batches()[0], table.to_reader(), pl.DataFrame(expected), expected, table.to_pydict()):
        assert read_batches(rows_body(rows)).to_pylist() == expected
    coded = pa.table({"id": pa.array(["a", "b"]).dictionary_encode(), "x": [1, 2]})
    assert read_batches(rows_body(coded)).column("id").type == pa.utf8()
    assert read_batches(rows_body(table.to_pandas())).schema.metadata is None
    for wrong in (5, [1, 2], [{"a": 1}, {"a": "x"}], {"a": [1], "b": [1, 2]}):
        with pytest.raises(InputError) as caught:
            rows_body(wrong)
        assert caught.value.code in ("E1006", "E1018")
