"""Cross-validation in time: every test comes after its training, in every series."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import InputError
from headwater.timeseries.methods.folding import cut_times
from headwater.timeseries.node import Ordering
from headwater.timeseries.operators.values import Values
from headwater.timeseries.running.here import run_here
from headwater.timeseries.stream import Stream


class _Here(Stream):
    """A stream that collects in this process."""

    def collect(self, *, sort: bool = True) -> pa.Table:
        return run_here(self.plan)


def _times(stream: Stream) -> list[Any]:
    return sorted(run_here(stream.plan)["t"].to_pylist())


def _stream(times: list[Any], kind: pa.DataType | None = None) -> _Here:
    rows = pa.table({"t": pa.array(times, kind or pa.int64()), "s": [str(i % 3) for i in range(len(times))]})
    return _Here(Values(rows), Ordering("t", ("s",)))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("even", ["rows", "time"])
def test_no_test_row_is_known_to_its_training(even: Any, seed: int) -> None:
    rng = random.Random(seed)
    times = [rng.choice([rng.randrange(1000), rng.randrange(50)]) for _ in range(400)]
    k, gap = rng.randint(1, 6), rng.choice([0, 1, 7])
    folds = _stream(times).folds(k, gap=gap, even=even)
    assert len(folds) == k
    tested: list[int] = []
    for train, test in folds:
        learned, asked = _times(train), _times(test)
        assert asked
        begins = min(asked) if not tested else max(tested) + 1
        assert not learned or max(learned) < begins - gap or max(learned) < min(asked) - gap
        # All rows before the gap are learned from.
        cut = max([t for t in times if t < min(asked)], default=None)
        if gap == 0 and cut is not None:
            assert learned == sorted(t for t in times if t <= cut)
        tested += asked
    # Each row is tested at most once, and the last rows are.
    assert sorted(tested) == sorted(t for t in times if t >= min(tested))


def test_parts_are_even_by_rows_or_by_time() -> None:
    times = [*range(300), *range(1000, 1100)]
    sizes = [len(_times(fold.test)) for fold in _stream(times).folds(3)]
    assert sizes == [100, 100, 101]
    tests = [_times(fold.test) for fold in _stream(times).folds(3, even="time")]
    assert tests == [list(range(275, 300)), [], list(range(1000, 1100))]
    assert cut_times(np.array([0, 1099]), 3, "time").tolist() == [275, 550, 825]


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32(), pa.int32()])
def test_gap_and_length_of_training(kind: pa.DataType) -> None:
    day = 1 if not pa.types.is_timestamp(kind) else 86_400_000_000
    numbers = [n * day for n in range(100)]
    narrow = pa.int64() if pa.types.is_timestamp(kind) else pa.int32()
    times = pa.array(numbers, narrow).cast(kind).to_pylist()
    length: Any = (lambda n: n) if pa.types.is_integer(kind) else (lambda n: f"{n} days")
    place = {time: n for n, time in enumerate(times)}
    for train, test in _stream(times, kind).folds(4, gap=length(2), train=length(10)):
        learned, asked = ([place[t] for t in _times(part)] for part in (train, test))
        assert learned == list(range(asked[0] - 12, asked[0] - 2))


def test_what_cannot_be_cut() -> None:
    with pytest.raises(InputError, match=r"`k` is 4\n.*4 tests would begin at 0 of them"):
        _stream([5] * 20).folds(4)
    with pytest.raises(InputError, match="`k` is 4"):
        _stream([5, 6]).folds(4, even="time")
    with pytest.raises(InputError, match="rows to cut"):
        _stream([]).folds(2)
    with pytest.raises(InputError, match="the time column `t` is null in at least 1 row"):
        _stream([1, None, 3]).folds(1)
    for arguments, says in (
        ({"k": 0}, "`k`"),
        ({"gap": -1}, "`gap`"),
        ({"gap": "1 s"}, "`gap`"),
        ({"train": 0}, "`train`"),
        ({"even": "rowz"}, "`even`"),
    ):
        with pytest.raises(InputError, match=says):
            _stream([1, 2]).folds(**arguments)
    with pytest.raises(InputError, match="`time`"):
        Stream(Values(pa.table({"v": [1]}))).folds()


def test_with_spark_ml(spark: Any, tmp_path: Path) -> None:
    from pyspark.ml.evaluation import RegressionEvaluator
    from pyspark.ml.feature import VectorAssembler
    from pyspark.ml.regression import LinearRegression

    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = [{"t": start + dt.timedelta(hours=n), "x": float(n % 7), "y": 3.0 * (n % 7) + 1} for n in range(120)]
    lake = hw.connect(tmp_path / "lake", spark=spark)
    lake.write("hours", pa.Table.from_pylist(rows))
    hours = lake.stream("hours", time="t")
    features = VectorAssembler(inputCols=["x"], outputCol="features")
    regression = LinearRegression(labelCol="y", solver="normal")
    folds = hours.folds(2, gap="6 hours")
    for train, test in folds:
        model = regression.fit(features.transform(train.spark()))
        found = model.transform(features.transform(test.spark()))
        assert RegressionEvaluator(labelCol="y", metricName="rmse").evaluate(found) < 1e-6
    assert [fold.test.count() for fold in folds] == [40, 41]
