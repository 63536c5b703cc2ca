"""Answers in every form: numpy, pandas, polars, Arrow, Python, torch; without copies where that is possible."""

from __future__ import annotations

import io
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from headwater.base.errors import InputError, NotFoundError, SetupError
from headwater.base.frontier import Frontier
from headwater.serving.answer import Answer
from headwater.serving.frame import Frame, FrameLayout
from headwater.serving.value_status import NOT_FOUND, NULL_VALUE, OUTSIDE_MAX_AGE, PRESENT

FLOATS = ["a", "b", "c"]


def stream(batch: pa.RecordBatch) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def answer_of(columns: dict[str, Any], **facts: Any) -> Answer:
    """An answer that pyarrow wrote, as any server may."""
    return Answer(bytearray(stream(pa.record_batch(columns))), **facts)


def floats(rows: int = 5, missing: tuple[int, ...] = (), *, columns: int = 3) -> Frame:
    """As a server makes it: NaN and a null where a row is missing."""
    names = [chr(ord("a") + n) for n in range(columns)]
    layout = FrameLayout(pa.schema([*((name, pa.float32()) for name in names), ("_found", pa.bool_())]))
    frame = layout.allocate(rows)
    there = np.ones(rows, bool)
    there[list(missing)] = False
    for n in range(columns):
        frame.values(n)[:] = np.where(there, np.arange(rows) + 10 * n, np.nan)
        frame.validity(n)[:] = np.packbits(there, bitorder="little")
    frame.values(columns)[:] = np.packbits(there, bitorder="little")
    frame.set_null_counts([len(missing)] * columns + [0])
    return frame


def shares(array: Any, body: bytearray) -> bool:
    return bool(np.shares_memory(array, np.frombuffer(body, np.uint8)))


@pytest.mark.parametrize("rows", [0, 1, 5, 100, 1000])
@pytest.mark.parametrize("columns", [1, 2, 3, 10])
def test_floats_are_one_view(rows: int, columns: int) -> None:
    missing = tuple(range(0, rows, 3))
    frame = floats(rows, missing, columns=columns)
    expected = np.array([np.arange(rows) + 10.0 * n for n in range(columns)], np.float32).T.copy()
    expected[list(missing)] = np.nan
    for answer in (Answer(frame), Answer(frame.buffer), Answer(bytes(frame.buffer)), Answer(memoryview(frame.buffer))):
        for _ in range(2):
            values = answer.to_numpy()
            assert values.shape == (rows, columns) and values.dtype == np.float32
            np.testing.assert_array_equal(values, expected)
            assert answer.found.tolist() == [n not in missing for n in range(rows)]
            assert len(answer) == rows
    if rows:
        answer = Answer(frame.buffer)
        assert shares(answer.to_numpy(), frame.buffer)
        assert shares(Answer(frame).to_numpy(), frame.buffer)
        assert shares(answer.to_numpy(["a"]), frame.buffer)
    if columns == 10:
        picked = Answer(frame.buffer).to_numpy(["c", "a", "f"])
        np.testing.assert_array_equal(picked, expected[:, [2, 0, 5]])


def test_a_view_over_a_bytearray_can_be_written() -> None:
    values = Answer(floats().buffer).to_numpy()
    values[0, 0] = 7
    assert values.flags.writeable and not Answer(bytes(floats().buffer)).to_numpy().flags.writeable


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.int64, np.uint64, np.float16, np.float64])
def test_numbers_of_one_type_are_one_view(kind: Any) -> None:
    arrow = pa.from_numpy_dtype(kind)
    layout = FrameLayout(pa.schema([("x", arrow), ("y", arrow), ("_found", pa.bool_())]))
    frame = layout.allocate(9)
    frame.values(0)[:], frame.values(1)[:] = np.arange(9), 5
    values = Answer(frame.buffer).to_numpy()
    assert values.dtype == kind and values.tolist() == [[n, 5] for n in range(9)] and shares(values, frame.buffer)


def test_floats_of_a_server_that_does_not_write_nan() -> None:
    answer = answer_of({"a": pa.array([1.0, None, 3.0], pa.float32()), "b": pa.array([None, None, 1.0], pa.float32())})
    for one in (answer, pickle.loads(pickle.dumps(answer))):  # read by pyarrow, and by position
        np.testing.assert_array_equal(one.to_numpy(), np.array([[1, np.nan], [np.nan, np.nan], [3, 1]], np.float32))
        assert one.to_pandas()["a"].isna().tolist() == [False, True, False]
        assert one.to_numpy(fill=-1).tolist() == [[1, -1], [-1, -1], [3, 1]]


def test_integers_with_nulls_are_refused_unless_there_is_a_value_for_them() -> None:
    for _ in range(2):
        answer = answer_of({"n": pa.array([1, None, 3], pa.int64()), "m": pa.array([1, 2, 3], pa.int64())})
        with pytest.raises(InputError, match=r"E1762.*`n` \(int64\) has 1 null,") as caught:
            answer.to_numpy()
        assert caught.value.hint is not None and "to_numpy(fill=0)" in caught.value.hint
        assert answer.to_numpy(fill=0).tolist() == [[1, 1], [0, 2], [3, 3]]
        assert answer.to_numpy(fill=-7).dtype == np.int64
        assert answer.to_numpy(["m"]).tolist() == [[1], [2], [3]]
    with pytest.raises(InputError, match="E1762"):
        answer_of({"flag": pa.array([True, None])}).to_numpy()
    assert answer_of({"flag": pa.array([True, None])}).to_numpy(fill=False).tolist() == [[True], [False]]


def test_mixed_columns_have_their_common_type() -> None:
    columns = {
        "f": pa.array([0.5, None], pa.float32()),
        "n": pa.array([None, 2], pa.int64()),
        "b": pa.array([True, False]),
    }
    values = answer_of(columns).to_numpy()
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, [[0.5, np.nan, 1], [np.nan, 2, 0]])
    with_text = answer_of({**columns, "s": pa.array(["x", None])}).to_numpy()
    assert with_text.dtype == object and with_text.tolist() == [[0.5, None, True, "x"], [None, 2, False, None]]
    assert answer_of({"s": pa.array(["x", None])}).to_numpy(fill="").tolist() == [["x"], [""]]
    when = pa.array([datetime(2026, 1, 2, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
    assert answer_of({"t": when, "n": columns["b"]}).to_numpy().dtype == object


def test_times() -> None:
    when = pa.array([datetime(2026, 1, 2, 3, 4), None], pa.timestamp("us"))
    for _ in range(2):
        values = answer_of({"t": when, "u": when}).to_numpy()
        assert values.dtype == np.dtype("M8[us]")
        assert values[0, 1] == np.datetime64("2026-01-02T03:04") and np.isnat(values[1]).all()
    whole = answer_of({"t": when[:1], "u": when[:1]}).to_numpy()
    assert whole.tolist() == [[datetime(2026, 1, 2, 3, 4)] * 2]
    days = answer_of({"d": pa.array([1, None], pa.date32())}).to_numpy()
    assert days.dtype == np.dtype("M8[D]") and days[0, 0] == np.datetime64("1970-01-02") and np.isnat(days[1, 0])


def test_embeddings_are_rows() -> None:
    lists = pa.array([[1, 2, 3], [4, 5, 6]], pa.list_(pa.float32()))
    assert answer_of({"e": lists}).to_numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert answer_of({"x": pa.array([1, 2]), "e": lists}).to_numpy(["e"]).shape == (2, 3)
    sparse = answer_of({"e": pa.array([None, [4, 5, 6], None], pa.list_(pa.float32()))}).to_numpy()
    np.testing.assert_array_equal(sparse, [[np.nan] * 3, [4, 5, 6], [np.nan] * 3])
    with pytest.raises(InputError, match="E1001"):
        answer_of({"e": pa.array([[1], [1, 2]], pa.list_(pa.float32()))}).to_numpy()
    with pytest.raises(InputError, match="E1762"):
        answer_of({"e": pa.array([[1], None], pa.list_(pa.int32()))}).to_numpy()
    assert answer_of({"e": pa.array([None, None], pa.list_(pa.float32()))}).to_numpy().shape == (2, 0)


def test_pandas_shares_the_bytes() -> None:
    frame = floats(100, (3,))
    rows = Answer(frame.buffer).to_pandas()
    assert isinstance(rows, pd.DataFrame) and list(rows.columns) == FLOATS and shares(rows.to_numpy(), frame.buffer)
    assert rows["b"].isna().sum() == 1 and rows["b"][4] == 14
    mixed = answer_of({"n": pa.array([1, 2]), "s": pa.array(["x", None]), "_found": pa.array([True, True])}).to_pandas()
    assert list(mixed.columns) == ["n", "s"] and mixed["n"].tolist() == [1, 2]


def test_tables() -> None:
    answer = Answer(floats(3, (1,)), frontier="orders@42", versions={"spend": 7})
    assert answer.to_arrow().column_names == [*FLOATS, "_found"] == pa.table(answer).column_names
    assert answer.to_arrow()["_found"].to_pylist() == [True, False, True]
    assert answer.to_polars().equals(
        pl.DataFrame({"a": [0, None, 2], "b": [10, None, 12], "c": [20, None, 22]}).cast(pl.Float32)
    )
    assert answer.to_pylist()[:2] == [{"a": 0.0, "b": 10.0, "c": 20.0}, {"a": None, "b": None, "c": None}]
    assert answer["b"].to_pylist() == [10, None, 12] and "b" in answer and "z" not in answer
    assert pl.DataFrame(answer).columns == [*FLOATS, "_found"]
    assert answer.columns == FLOATS and answer.schema.names == [*FLOATS, "_found"]
    with pytest.raises(NotFoundError, match=r"E1002.*`_fund`") as caught:
        answer["_fund"]
    assert caught.value.hint is not None and "did you mean `_found`?" in caught.value.hint
    with pytest.raises(NotFoundError, match="E1002"):
        answer.to_numpy(["a", "z"])


def test_the_facts_beside_the_rows() -> None:
    answer = Answer(floats(), frontier="orders@42 cards@3", versions="spend@7 `my table`@1")
    assert answer.frontier == Frontier(orders=42, cards=3) and dict(answer.versions) == {"spend": 7, "my table": 1}
    assert repr(answer) == "Answer(5 rows of a, b, c from `my table`@1 spend@7, cards@3 orders@42)"
    given = Answer(floats(1), frontier=Frontier(orders=1), versions={"spend": 7})
    assert repr(given) == "Answer(1 row of a, b, c from spend@7, orders@1)"
    assert Answer(floats()).frontier == Frontier() and repr(Answer(floats(columns=9))).startswith(
        "Answer(5 rows of a, b, c, d, e, f, …)"
    )
    again = pickle.loads(pickle.dumps(answer))
    assert again.frontier == answer.frontier and again.to_arrow().equals(answer.to_arrow())
    page = Answer(floats(30, (1,)), versions="spend@1")._repr_html_()
    assert page.count("<tr>") == 21 and "null" in page and "<caption>Answer(30 rows" in page
    assert "&lt;x&gt;" in answer_of({"<x>": pa.array(["<y>"])})._repr_html_()


def test_what_is_known_of_a_value() -> None:
    columns = {
        "a": pa.array([1.0, None, None, None]),
        "_status": pa.array([PRESENT, PRESENT, NOT_FOUND, OUTSIDE_MAX_AGE], pa.uint8()),
    }
    answer = answer_of(columns)
    assert answer.status("a").tolist() == [PRESENT, NULL_VALUE, NOT_FOUND, OUTSIDE_MAX_AGE]
    assert answer.found.tolist() == [True, True, False, False]
    derived = answer_of({"a": columns["a"], "_found": pa.array([True, True, False, False])})
    assert derived.status("a").tolist() == [PRESENT, NULL_VALUE, NOT_FOUND, NOT_FOUND]
    with pytest.raises(InputError, match=r"E1763.*which keys were found") as caught:
        answer_of({"a": columns["a"]}).status("a")
    assert caught.value.hint == "ask for it: fetch(…, found=True)"


def test_dropped_rows_and_event_times() -> None:
    answer = answer_of({"a": pa.array([1.0, 2.0]), "_idx": pa.array([0, 4], pa.int32())})
    assert answer.index.tolist() == [0, 4] and answer.found.tolist() == [True, True] and answer.columns == ["a"]
    assert Answer(floats(3)).index.tolist() == [0, 1, 2]
    when = pa.array([datetime(2026, 1, 2)], pa.timestamp("us"))
    assert answer_of({"a": pa.array([1.0]), "_event_time": when}).event_time.equals(when)
    with pytest.raises(InputError, match="E1763"):
        _ = answer.event_time


def test_several_tables() -> None:
    answer = answer_of(
        {
            "spend.a": pa.array([1.0, None, None]),
            "_found.spend": pa.array([True, True, False]),
            "risk.a": pa.array([1.0, None, 2.0]),
            "_found.risk": pa.array([True, False, True]),
        }
    )
    assert answer.columns == ["spend.a", "risk.a"] and answer.found.tolist() == [True, False, False]
    assert answer.found_in("risk").tolist() == [True, False, True]
    assert answer.status("spend.a").tolist() == [PRESENT, NULL_VALUE, NOT_FOUND]
    assert answer.status("risk.a").tolist() == [PRESENT, NOT_FOUND, PRESENT]


def test_an_answer_without_columns() -> None:
    answer = answer_of({"_found": pa.array([True, False])})
    assert (
        answer.to_numpy().shape == (2, 0) and answer.to_pylist() == [{}, {}] and answer.found.tolist() == [True, False]
    )


def test_other_types_pass_through() -> None:
    columns = {"d": pa.array([Decimal("1.50"), None]), "y": pa.array([b"\xff", None]), "l": pa.array([[1], None])}
    for _ in range(2):
        answer = answer_of(columns)
        assert answer.to_pylist() == pa.table(columns).to_pylist()
        assert answer.to_numpy(["d"]).tolist() == [[Decimal("1.50")], [None]]
        assert answer.to_polars()["d"].to_list() == [Decimal("1.50"), None]


@pytest.mark.parametrize("body", [b"", b"x", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"{}" * 50])
def test_a_broken_stream_is_an_error_at_once(body: bytes) -> None:
    with pytest.raises(InputError, match="E1760"):
        Answer(body)
    frame = floats()
    Answer(frame.buffer)
    for length in range(len(frame.buffer) - 8):
        with pytest.raises(InputError, match="E1760"):
            Answer(frame.buffer[:length])


def test_dlpack_shares_the_memory() -> None:
    frame = floats(100)
    answer = Answer(frame.buffer)
    array = np.from_dlpack(answer)
    assert array.shape == (100, 3) and array.dtype == np.float32
    assert np.shares_memory(array, np.frombuffer(frame.buffer, np.uint8))
    assert np.array_equal(array, answer.to_numpy())
    array = np.from_dlpack(answer, copy=True)
    assert not np.shares_memory(array, answer.to_numpy())
    assert answer.__dlpack_device__() == np.zeros(1).__dlpack_device__()


def test_dlpack_copies_what_must_not_be_written() -> None:
    body = bytes(floats(100, (3,)).buffer)
    array = np.from_dlpack(Answer(body))
    assert not np.shares_memory(array, np.frombuffer(body, np.uint8))
    assert array[5].tolist() == [5, 15, 25] and np.isnan(array[3]).all()


def test_dlpack_has_no_nulls_among_integers() -> None:
    with pytest.raises(InputError):
        np.from_dlpack(answer_of({"n": pa.array([1, None])}))
    assert np.from_dlpack(answer_of({"n": pa.array([1, 2])})).tolist() == [[1], [2]]


def test_torch_shares_the_memory() -> None:
    torch = pytest.importorskip("torch")
    frame = floats(100)
    tensor = Answer(frame.buffer).to_torch()
    assert tensor.shape == (100, 3) and tensor.dtype == torch.float32
    tensor[4, 1] = -1
    assert Answer(frame.buffer).to_numpy()[4, 1] == -1
    assert Answer(bytes(frame.buffer)).to_torch()[5, 0] == 5
    assert answer_of({"n": pa.array([1, None])}).to_torch(fill=0).tolist() == [[1], [0]]


def test_without_torch() -> None:
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]  # noqa: F401
    except ImportError:
        with pytest.raises(SetupError, match=r"to_torch\(\) needs the package `torch`"):
            Answer(floats()).to_torch()


def test_answers_that_begin_alike_are_read_as_if_each_were_the_first() -> None:
    """Lengths repeat, and with them what is remembered; rows, nulls, columns and the end marker still count."""
    rng = np.random.default_rng(7)
    for turn in range(300):
        columns, rows = int(rng.integers(1, 4)), int(rng.integers(1, 5))
        missing = (0,) if rng.random() < 0.3 else ()
        frame = floats(rows, missing, columns=columns)
        values = np.array([frame.values(n) for n in range(columns)]).T + turn
        for n in range(columns):
            frame.values(n)[:] = values[:, n]
        body = bytearray(frame.buffer)
        answer = Answer(body)
        np.testing.assert_array_equal(answer.to_numpy(), values)
        assert shares(answer.to_numpy(), body)
        np.testing.assert_array_equal(answer.to_numpy(["a"]), values[:, :1])
        assert answer["a"].null_count == len(missing) and answer.found.tolist() == [
            r not in missing for r in range(rows)
        ]
        with pytest.raises(InputError):
            Answer(body[:-8] + bytes(8))
