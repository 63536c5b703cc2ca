"""Cross-validation in time: a stream cut into training and test rows, so that no model has seen the future of its test.

The test rows of a fold come after all of its training rows, in every series: cuts are times, the same for all series,
so what one series knows of the future cannot reach another. (Cut by the number of rows in each series, a model would
be trained on Tuesday's rows of one and tested on Monday's rows of another.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import InputError
from headwater.base.spans import span
from headwater.timeseries.methods.base import Methods
from headwater.timeseries.methods.ordered_arguments import Length, whole_number
from headwater.timeseries.moments import moment_type, moments_from
from headwater.timeseries.operators.quantiles import Quantiles
from headwater.timeseries.operators.time_filter import TimeFilter
from headwater.timeseries.times import moved, time_field, time_numbers

__all__ = ["Fold", "FoldMethods", "cut_times"]

S = TypeVar("S")
Numbers = npt.NDArray[np.int64]
_ERROR = 0.001
"""How far a cut may be off, as a share of the rows."""


class Fold(NamedTuple, Generic[S]):
    """The rows to learn from, and the later rows to test with."""

    train: S
    test: S


@dataclass(frozen=True)
class _TimeQuantiles(Quantiles):
    """Quantiles of a time column, in which every row has to have one."""

    def time_columns(self) -> tuple[str | None, ...]:
        return (self.columns[0],)


class FoldMethods(Methods):
    """Cross-validation."""

    if TYPE_CHECKING:

        def collect(self, *, sort: bool = True) -> pa.Table: ...

    def folds(
        self,
        k: int = 3,
        *,
        gap: Length = 0,
        train: Length | None = None,
        even: Literal["rows", "time"] = "rows",
    ) -> list[Fold[Self]]:
        """Cut the stream in time into ``k`` pairs of training and test rows.

        ``for train, test in stream.folds(5, gap="1 day"): ...``

        Time is cut into k + 1 parts. The i-th test has part i + 1, and its training has all rows before it: of every
        series, and none of them later than any row of the test. The times of the cuts are looked up at once, in one
        pass over the time column; the folds themselves are lazy, like every stream. ``fold.train.spark()`` is a
        DataFrame for Spark ML.

        Parameters
        ----------
        k
            How many folds.
        gap
            How long before a test its training ends: rows of that time are in neither. As long as a label looks
            ahead, so that none of it is known.
        train
            How much time a training may have, at most; all that there is before, if None.
        even
            "rows": parts of about equally many rows; "time": parts of equal length, of which some may have no rows.
        """
        ordering = self._ordered("folds")
        field = time_field(self.schema, ordering.time)
        whole_number("k", k, at_least=1)
        if even not in ("rows", "time"):
            raise InputError.bad_argument("even", even, "rows or time")
        before = span(gap, field, "gap")
        if before < 0:
            raise InputError.bad_argument("gap", gap, "0 or more")
        longest = None if train is None else span(train, field, "train")
        if longest is not None and longest <= 0:
            raise InputError.bad_argument("train", train, "a length greater than zero")
        asked = tuple(i / (k + 1) for i in range(k + 1)) if even == "rows" else (0.0, 1.0)
        node = _TimeQuantiles(self.plan, (field.name,), asked, _ERROR)
        found = self._with(node).collect(sort=False)
        if found.column(field.name).null_count:
            raise InputError.bad_argument("stream", "one without rows", "rows to cut into folds")
        cuts = cut_times(time_numbers(found.column(field.name))[0], k, even)
        return [self._fold(field, cuts, i, before, longest) for i in range(k)]

    def _fold(self, field: pa.Field, cuts: Numbers, i: int, gap: int, longest: int | None) -> Fold[Self]:
        ends = moved(cuts[i : i + 1], -gap)
        begins = None if longest is None else _moment(moved(ends, -longest), field)
        training = TimeFilter(self.plan, field.name, begins, _moment(ends, field), with_end=False)
        until = None if i + 1 == len(cuts) else _moment(cuts[i + 1 : i + 2], field)
        test = TimeFilter(self.plan, field.name, _moment(cuts[i : i + 1], field), until, with_end=False)
        return Fold(self._with(training), self._with(test))


def cut_times(found: Numbers, k: int, even: str) -> Numbers:
    """When the tests begin: at the times that were found after the first one, or evenly between the first and the last.

    >>> cut_times(np.array([0, 100]), 3, "time").tolist()
    [25, 50, 75]
    """
    if even == "time":
        first, last = int(found[0]), int(found[-1])
        # Rounded up, so that there are rows before each; in Python's numbers, which hold any distance.
        found = np.array([first - (first - last) * i // (k + 1) for i in range(k + 1)], np.int64)
    cuts = np.unique(found)
    if len(cuts) <= k:
        expected = (
            f"fewer folds, or more different times: {k} tests would begin at {len(cuts) - 1} of them, with rows before"
        )
        raise InputError.bad_argument("k", k, expected)
    return cuts[1:]


def _moment(number: Numbers, field: pa.Field) -> pa.Scalar[Any]:
    if pa.types.is_integer(field.type):
        ends = np.iinfo(field.type.to_pandas_dtype())
        number = np.clip(number, ends.min, ends.max)
        return pa.scalar(int(number[0]), field.type)
    return moments_from(number, moment_type(field))[0]
