"""A result: one pass in bounded memory, peeks that lose nothing, one table for all who ask."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.base.errors import CancelledError, ExpressionError, InputError
from headwater.query.result import Result

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


class Source:
    """Batches that count how many of them were asked for."""

    def __init__(self, batches: int, rows: int = 3) -> None:
        self.asked = self.closed = 0
        self.batches, self.rows = batches, rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for number in range(self.batches):
            self.asked += 1
            ids = [number * self.rows + row for row in range(self.rows)]
            yield pa.record_batch([pa.array(ids), pa.array([f"n{i}" for i in ids])], schema=SCHEMA)

    def result(self) -> Result:
        return Result(pa.RecordBatchReader.from_batches(SCHEMA, iter(self)), close=self._close)

    def _close(self) -> None:
        self.closed += 1

    @property
    def ids(self) -> list[int]:
        return list(range(self.batches * self.rows))


def ids_of(batches: Iterator[pa.RecordBatch] | Result) -> list[int]:
    return [i for batch in batches for i in batch.column("id").to_pylist()]


def test_nothing_is_read_before_somebody_asks() -> None:
    source = Source(3)
    result = source.result()
    assert (result.columns, result.schema, result.statement) == (["id", "name"], SCHEMA, "SELECT")
    assert source.asked == 0


def test_iteration_holds_one_batch_at_a_time() -> None:
    source = Source(5)
    for number, batch in enumerate(source.result(), start=1):
        assert batch.num_rows == 3
        assert source.asked == number
    assert source.closed == 1


@pytest.mark.parametrize("how", ["iterate", "reader", "capsule", "polars stream"])
def test_a_stream_is_read_once(how: str) -> None:
    source = Source(4)
    result = source.result()
    if how == "iterate":
        ids = ids_of(iter(result))
    elif how == "reader":
        ids = result.to_reader().read_all()["id"].to_pylist()
    elif how == "capsule":
        ids = pa.table(result)["id"].to_pylist()
    else:
        ids = pl.DataFrame(result)["id"].to_list()
    assert ids == source.ids
    assert source.closed == 1
    for again in (result.to_arrow, result.to_reader, result.to_pandas, result.show, lambda: iter(result)):
        with pytest.raises(InputError, match="E1401") as caught:
            again()
        assert "to_arrow()" in (caught.value.hint or "")
    assert "the rows are gone" in repr(result)
    assert "the rows are gone" in result._repr_html_()


def test_a_table_is_kept_and_the_same_for_all() -> None:
    source = Source(4)
    result = source.result()
    table = result.to_arrow()
    assert result.to_arrow() is table
    assert ids_of(result) == ids_of(result) == source.ids
    assert result.to_reader().read_all() == result.to_reader().read_all() == table
    assert result.to_polars()["id"].to_list() == result.to_pandas()["id"].tolist() == source.ids
    assert (source.asked, source.closed) == (4, 1)


@given(st.integers(0, 9), st.integers(0, 5), st.lists(st.sampled_from(["repr", "html", "show", "scalar", "head"])))
def test_peeks_lose_nothing(batches: int, rows: int, peeks: list[str]) -> None:
    source = Source(batches, rows)
    result = source.result()
    for peek in peeks:
        if peek == "scalar":
            with pytest.raises(InputError, match="E1403"):
                result.scalar()
        else:
            {"repr": result.__repr__, "html": result._repr_html_, "show": lambda: result.show(2)}.get(
                peek, lambda: result.head(1)
            )()
    assert ids_of(result) == source.ids


def test_a_peek_reads_no_more_than_it_shows() -> None:
    source = Source(1000, rows=10)
    result = source.result()
    assert "… 20 of more rows" in repr(result)
    assert source.asked == 3  # 21 rows tell that there are more than 20
    assert result.to_arrow().num_rows == 10_000
    assert "… 20 of 10000 rows" in repr(result)


def test_a_small_result_that_was_looked_at_can_be_read_again() -> None:
    result = Source(2).result()
    repr(result)
    assert ids_of(result) == ids_of(result) == [0, 1, 2, 3, 4, 5]


def test_two_threads_get_the_same_table() -> None:
    source = Source(200)
    result = source.result()
    barrier, tables = threading.Barrier(8), []

    def ask() -> None:
        barrier.wait()
        tables.append(result.to_arrow())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tables) == 8
    assert all(table is tables[0] for table in tables)
    assert source.asked == 200


def slow_batches(cursor: duckdb.DuckDBPyConnection) -> pa.RecordBatchReader:
    """A real engine that computes for hours once the first batch is asked for."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from cursor.sql("SELECT count(*) AS id FROM range(100000000000) a, range(1000) b").to_arrow_reader()

    return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches())


@pytest.mark.parametrize("how", ["to_arrow", "reader", "peek"])
def test_cancel_from_another_thread_is_typed(how: str) -> None:
    cursor = duckdb.connect()
    result = Result(slow_batches(cursor), cancel=cursor.interrupt, close=cursor.close)
    timer = threading.Timer(0.3, result.cancel)
    timer.start()
    read = {"to_arrow": result.to_arrow, "reader": lambda: result.to_reader().read_all(), "peek": result.scalar}[how]
    with pytest.raises(CancelledError, match="E1402"):
        read()  # which would take hours
    with pytest.raises((CancelledError, InputError)):
        result.to_arrow()
    timer.join()


def test_an_interruption_by_the_engine_itself_is_the_same_error() -> None:
    connection = duckdb.connect()
    result = Result(slow_batches(connection))
    ended = threading.Event()

    def interrupt() -> None:
        while not ended.wait(0.1):  # DuckDB forgets an interruption that comes before the query has begun
            connection.interrupt()

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        with pytest.raises(CancelledError):
            result.to_arrow()
    finally:
        ended.set()
        interrupting.join()


def test_cancel_between_batches() -> None:
    source = Source(10)
    result = source.result()
    stream = iter(result)
    next(stream)
    result.cancel()
    with pytest.raises(CancelledError):
        next(stream)
    assert (source.asked, source.closed) == (1, 1)
    result = source.result()
    result.head(2)
    result.cancel()
    with pytest.raises(CancelledError):
        result.to_arrow()


def test_cancel_leaves_kept_rows_alone() -> None:
    result = Source(2).result()
    result.to_arrow()
    result.cancel()
    assert result.to_arrow().num_rows == 6


def test_an_error_of_the_stream_stays() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from Source(1)
        raise ExpressionError.failed("1/0", "division by zero")

    result = Result(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
    for _ in range(2):
        with pytest.raises(ExpressionError, match="division by zero"):
            result.to_arrow()
    with pytest.raises(ExpressionError, match="division by zero"):
        repr(result)
    result = Result(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
    with pytest.raises(ExpressionError, match="division by zero"):
        result.to_reader().read_all()


def test_close_gives_back_and_keeps_what_is_kept() -> None:
    source = Source(3)
    with source.result() as result:
        pass
    assert source.closed == 1
    with pytest.raises(InputError, match="it was closed"):
        result.to_arrow()
    with source.result() as result:
        result.to_arrow()
    assert ids_of(result) == source.ids
    source = Source(3)
    result = source.result()
    del result
    gc.collect()
    assert source.closed == 1, "a result that nobody read gives back too"


def test_walking_away_in_the_middle_closes() -> None:
    source = Source(5)
    stream = iter(source.result())
    next(stream)
    del stream
    gc.collect()
    assert source.closed == 1


def test_rows_as_python_values() -> None:
    table = pa.table(
        {"d": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)), "on": [date(2024, 5, 1), None], "l": [[1], []]}
    )
    result = Result.of(table, "SELECT")
    assert result.to_dicts() == result.to_pylist() == table.to_pylist()
    assert result.to_tuples() == result.fetchall() == [(Decimal("1.50"), date(2024, 5, 1), [1]), (None, None, [])]
    assert Result.of(pa.table({}), "CREATE TABLE").to_tuples() == []


def test_columns_of_the_same_name() -> None:
    result = Result.of(pa.table([[1, 2], ["x", "y"]], names=["a", "a"]), "SELECT")
    assert result.columns == ["a", "a"]
    assert result.to_tuples() == [(1, "x"), (2, "y")]
    assert result.to_pandas().to_numpy().tolist() == [[1, "x"], [2, "y"]]
    for refused in (result.to_dicts, result.to_pylist, result.to_polars):
        with pytest.raises(InputError, match="E1404"):
            refused()
    assert repr(result).startswith("     a  a\n")
    # Case tells them apart: these are two keys.
    assert Result.of(pa.table([[1], [2]], names=["a", "A"]), "SELECT").to_dicts() == [{"a": 1, "A": 2}]


def test_scalar() -> None:
    assert Result.of(pa.table({"n": [None]}), "SELECT").scalar() is None
    assert Result(pa.table({"n": [7]}).to_reader()).scalar() == 7
    for table, said in (
        (pa.table({"n": pa.array([], pa.int64())}), "no rows and 1 column"),
        (pa.table({"n": [1, 2]}), "more than one row and 1 column"),
        (pa.table({"n": [1], "m": [2]}), "1 row and 2 columns"),
    ):
        with pytest.raises(InputError, match=said):
            Result.of(table, "SELECT").scalar()


def test_a_value_that_python_cannot_hold() -> None:
    result = Result.of(pa.table({"t": pa.array([5 * 10**17], pa.timestamp("us", "UTC"))}), "SELECT")
    with pytest.raises(InputError, match="E1405"):
        result.to_dicts()
    with pytest.raises(InputError, match="E1405"):
        result.scalar()
    assert "+17814-05-16 00:53:20" in repr(result)


def test_there_is_no_length() -> None:
    with pytest.raises(TypeError):
        len(Source(1).result())  # type: ignore[arg-type]
    assert len(list(Source(3).result())) == 3


def test_other_libraries_take_it() -> None:
    source = Source(3)
    assert duckdb.connect().from_arrow(source.result().to_reader()).fetchall() == [(i, f"n{i}") for i in source.ids]
    assert pa.schema(source.result()) == SCHEMA


def test_it_can_be_written_to_a_lake(tmp_path: object) -> None:
    lake = hw.connect(str(tmp_path))
    lake.write("copy", Source(3).result())
    assert sorted(lake.table("copy").to_arrow()["id"].to_pylist()) == Source(3).ids


def test_show_refuses_odd_counts(capsys: pytest.CaptureFixture[str]) -> None:
    result = Source(3).result()
    for odd in (-1, True, "5"):
        with pytest.raises(InputError):
            result.show(odd)  # type: ignore[arg-type]
    result.show(0)
    assert capsys.readouterr().out.endswith("… 0 of more rows\n")
