"""Fitting: a frame made to fit a table on Spark, with every rule checked in the pass that writes it.

The rules are those of `conform` and `constraints`: a value changes its type only if nothing of it is lost, NOT NULL and
CHECK hold for every row, a generated column is what its expression says. Spark computes them as columns; how many rows
break each rule is counted while the rows are written (`DataFrame.observe`), so checking takes no second pass. Nothing
is committed unless all counts are zero.

A conversion that may lose something is tried (``try_cast``) and counted as broken where the way back does not give
the value that was there. Inside arrays, maps and structs only conversions that cannot lose anything are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from headwater.base.errors import ConstraintError, HeadwaterError, SchemaError, StorageError
from headwater.base.schema import Schema
from headwater.lake.conform import Rows, conform
from headwater.lake.spark.types import arrow_schema, column, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Fitted", "fit"]

Failure = Callable[[int], HeadwaterError]
_INTEGERS: dict[type[st.DataType], int] = {st.ByteType: 3, st.ShortType: 5, st.IntegerType: 10, st.LongType: 19}
_EXACT_IN_DOUBLE = (st.FloatType, st.ByteType, st.ShortType, st.IntegerType)


@dataclass(slots=True)
class _Rules:
    """What is counted about a frame: for each rule the rows that break it, and the error if there are any."""

    broken: list[Column] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    observation: Observation | None = None

    def add(self, broken: Column, failure: Failure) -> None:
        self.broken.append(broken)
        self.failures.append(failure)

    def watch(self, frame: DataFrame) -> DataFrame:
        if not self.broken:
            return frame
        self.observation = Observation()
        counts = [sf.count_if(b).alias(f"rule{i}") for i, b in enumerate(self.broken)]
        return frame.observe(self.observation, *counts)

    def check(self) -> None:
        if self.observation is None:
            return
        counts = self.observation.get
        for i, failure in enumerate(self.failures):
            if rows := int(counts.get(f"rule{i}") or 0):
                raise failure(rows)


@dataclass(slots=True)
class Fitted:
    """A frame with exactly the table's columns; `check` raises for broken rules once the frame was written."""

    frame: DataFrame
    rules: tuple[_Rules, _Rules]
    rows: Observation | None = None

    def check(self) -> None:
        for rules in self.rules:
            rules.check()

    def count_rows(self) -> None:
        """Count the rows as they pass, for `check_count`."""
        self.rows = Observation()
        self.frame = self.frame.observe(self.rows, sf.count(sf.lit(1)).alias("rows"))

    def check_count(self, written: int, place: str) -> None:
        """Raise if other rows passed than were found in files."""
        if self.rows is None:
            return
        passed = int(self.rows.get["rows"])
        if passed != written:
            raise StorageError.failed(
                place,
                f"Spark wrote {passed} rows, of which {written} are here; executors on "
                "other machines need a storage that all machines share",
            )


def fit(frame: DataFrame, schema: Schema, checks: Mapping[str, str], where: str | None, place: str) -> Fitted:
    """``frame`` as rows of the table: its columns and types, generated columns filled in, all rules watched."""
    generated = {f.name: f.generation for f in schema.fields if f.generation}
    conform(Rows(arrow_schema(frame.schema), iter(())), schema, where=place, optional=list(generated))
    have = {f.name.lower(): f for f in frame.schema.fields}
    before, after = _Rules(), _Rules()
    columns = []
    for f in schema.fields:
        given = have.get(f.name.lower())
        if given is not None:
            value = _converted(sf.col(column(given.name)), given.dataType, f.type, f.name, before, place)
            columns.append(value.alias(f.name))
        elif f.name not in generated:
            columns.append(sf.lit(None).cast(spark_type(f.type)).alias(f.name))
    fitted = before.watch(frame).select(columns)
    absent = {
        n: sf.expr(text).cast(spark_type(schema.field(n).type))
        for n, text in generated.items()
        if n.lower() not in have
    }
    if absent:
        fitted = fitted.withColumns(absent).select([column(n) for n in schema.names])
    _watch_rules(after, schema, generated, checks, where, have, place)
    return Fitted(after.watch(fitted), (before, after))


def _watch_rules(
    rules: _Rules,
    schema: Schema,
    generated: Mapping[str, str],
    checks: Mapping[str, str],
    where: str | None,
    have: Mapping[str, st.StructField],
    place: str,
) -> None:
    for name, text in generated.items():
        if name.lower() in have:
            expected = sf.expr(text).cast(spark_type(schema.field(name).type))
            rules.add(~sf.col(column(name)).eqNullSafe(expected), _generated(name, text, place))
    for f in schema.fields:
        given = have.get(f.name.lower())
        if not f.nullable and (given is None or given.nullable):
            rules.add(sf.col(column(f.name)).isNull(), _not_null(f.name, place))
    for name, text in checks.items():
        rules.add(~sf.coalesce(sf.expr(text), sf.lit(False)), _check(name, text, place))
    if where is not None:
        rules.add(~sf.coalesce(sf.expr(where), sf.lit(False)), _outside(where, place))


def _generated(name: str, text: str, place: str) -> Failure:
    return lambda rows: ConstraintError.generated(name, text, rows, place)


def _not_null(name: str, place: str) -> Failure:
    return lambda rows: ConstraintError.not_null(name, rows, place)


def _check(name: str, text: str, place: str) -> Failure:
    return lambda rows: ConstraintError.check(name, text, rows, place)


def _outside(where: str, place: str) -> Failure:
    return lambda rows: ConstraintError.outside(where, rows, place)


def _lossy(name: str, want: str, place: str) -> Failure:
    return lambda rows: SchemaError.value_out_of_range(name, want, f"{rows} row(s) would lose something", place)


# ---- types -----------------------------------------------------------------------------------------------


def _converted(value: Column, have: st.DataType, dtype: object, name: str, rules: _Rules, place: str) -> Column:
    """``value`` in the table's type; `conform` has made sure that the types may go together."""
    want = spark_type(dtype)  # type: ignore[arg-type]
    if _is_same(have, want):
        return value
    if _is_nested(have) or _is_nested(want):
        return _nested(value, have, want, name, place)
    if isinstance(have, st.NullType) or _is_lossless(have, want):
        return value.cast(want)
    if isinstance(want, st.TimestampType | st.TimestampNTZType):
        return _moment(value, have, want)
    if isinstance(want, st.FloatType | st.DoubleType) and isinstance(have, st.DoubleType | st.DecimalType):
        return value.cast(want)  # rounding to the nearest is what such a column means
    tried = value.try_cast(want)
    if isinstance(want, st.DecimalType) and isinstance(have, st.FloatType | st.DoubleType):
        rules.add(value.isNotNull() & tried.isNull(), _lossy(name, want.simpleString(), place))
    else:
        rules.add(~tried.try_cast(have).eqNullSafe(value), _lossy(name, want.simpleString(), place))
    return tried


def _is_nested(kind: st.DataType) -> bool:
    return isinstance(kind, st.ArrayType | st.MapType | st.StructType)


def _is_same(have: st.DataType, want: st.DataType) -> bool:
    """Whether the types differ in nothing but nullability."""
    if isinstance(have, st.StructType) and isinstance(want, st.StructType):
        return have.names == want.names and all(
            _is_same(a.dataType, b.dataType) for a, b in zip(have.fields, want.fields, strict=True)
        )
    if isinstance(have, st.ArrayType) and isinstance(want, st.ArrayType):
        return _is_same(have.elementType, want.elementType)
    if isinstance(have, st.MapType) and isinstance(want, st.MapType):
        return _is_same(have.keyType, want.keyType) and _is_same(have.valueType, want.valueType)
    return have == want


def _is_lossless(have: st.DataType, want: st.DataType) -> bool:
    if type(have) in _INTEGERS and type(want) in _INTEGERS:
        return _INTEGERS[type(have)] <= _INTEGERS[type(want)]
    if isinstance(want, st.DoubleType):
        return isinstance(have, _EXACT_IN_DOUBLE)
    if isinstance(want, st.DecimalType):
        if isinstance(have, st.DecimalType):
            return want.scale >= have.scale and want.precision - want.scale >= have.precision - have.scale
        return type(have) in _INTEGERS and want.precision - want.scale >= _INTEGERS[type(have)]
    return isinstance(have, st.DateType) and isinstance(want, st.TimestampNTZType)


def _moment(value: Column, have: st.DataType, want: st.DataType) -> Column:
    """A wall clock given for an instant, or the reverse: it is UTC, whatever zone the session has."""
    if isinstance(want, st.TimestampType):
        midnight = " 00:00:00Z" if isinstance(have, st.DateType) else "Z"
        return sf.concat(value.cast("string"), sf.lit(midnight)).cast(want)
    seconds = (sf.unix_micros(value).cast("decimal(20,0)") / 1_000_000).cast("decimal(18,6)")
    zero = sf.lit(0)
    return sf.lit("1970-01-01 00:00:00").cast("timestamp_ntz") + sf.make_dt_interval(zero, zero, zero, seconds)


def _nested(value: Column, have: st.DataType, want: st.DataType, name: str, place: str) -> Column:
    """Structs by field name, and what they hold; anything that may lose something is a clash."""
    if _is_same(have, want):
        return value
    if isinstance(have, st.StructType) and isinstance(want, st.StructType):
        given = {f.name: f for f in have.fields}
        parts = []
        for f in want.fields:
            if f.name in given:
                part = _nested(value.getField(f.name), given[f.name].dataType, f.dataType, f"{name}.{f.name}", place)
            else:
                part = sf.lit(None).cast(f.dataType)
            parts.append(part.alias(f.name))
        return sf.when(value.isNotNull(), sf.struct(*parts)).cast(want)
    if isinstance(have, st.ArrayType) and isinstance(want, st.ArrayType):
        inner = have.elementType
        return sf.transform(value, lambda x: _nested(x, inner, want.elementType, f"{name}.element", place)).cast(want)
    if isinstance(have, st.MapType) and isinstance(want, st.MapType):
        keys = sf.transform(sf.map_keys(value), lambda x: _nested(x, have.keyType, want.keyType, f"{name}.key", place))
        items = sf.transform(
            sf.map_values(value), lambda x: _nested(x, have.valueType, want.valueType, f"{name}.value", place)
        )
        return sf.map_from_arrays(keys, items).cast(want)
    if isinstance(have, st.NullType) or _is_lossless(have, want):
        return value.cast(want)
    raise SchemaError.type_clash(name, have.simpleString(), want.simpleString(), place)
