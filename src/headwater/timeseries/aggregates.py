"""Aggregates of windows: texts that are read once by the driver, and computed over stretches of sorted rows in tasks.

There are two ways to the same answer. The fast one computes each aggregate of a text by itself
(`headwater.timeseries.stretches`), and from their results what the text makes of them; the general one gives DuckDB the
rows of each window, or the rows with their frames. A text goes the fast way if all its aggregates are known there, and
whole numbers that might not fit go back to the general one, which says so.

Tables get three columns of numbers for texts to stand on: the window or series, the time, and the row's place in the
order. Aggregates that go by order go by the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import HeadwaterError, InputError
from headwater.timeseries.aggregate_calls import Call, by_key, calls_in, names_in, over, replaced
from headwater.timeseries.querying import RowsQuery, quoted, select_list
from headwater.timeseries.reading import RowsText, of_groups, of_rows
from headwater.timeseries.stretches import FUNCTIONS, Stretches, Unfit, is_known

__all__ = ["GROUP", "PLACE", "TIME", "Aggregates"]

GROUP, TIME, PLACE = "__hw_group", "__hw_time", "__hw_place"

Places = npt.NDArray[np.int64]

_BATCH_ROWS = 1 << 20
_TEXTS = 50


@dataclass(frozen=True, slots=True)
class _Measure:
    """An aggregate that is computed by itself."""

    function: str
    argument: str | None
    kind: pa.DataType
    skips: bool


@dataclass(frozen=True, slots=True)
class _Fast:
    """Aggregates by themselves, and what texts make of them."""

    measures: tuple[_Measure, ...]
    arguments: RowsText | None
    outer: tuple[RowsText, ...]
    direct: Mapping[str, int]

    def reads(self) -> Iterator[str]:
        yield from (m.argument for m in self.measures if m.argument is not None and not m.argument.startswith("__hw_a"))
        yield from self.arguments.reads if self.arguments else ()

    def run(self, table: pa.Table, at: Stretches, rows: pa.Table | None) -> dict[str, pa.Array]:
        """Results by name; ``rows`` are those that the stretches stand beside, one for each."""
        computed = self.arguments.run(table) if self.arguments else None
        found: list[pa.Array] = []
        for m in self.measures:
            column = None
            if m.argument is not None:
                column = (computed if m.argument.startswith("__hw_a") and computed is not None else table).column(
                    m.argument
                )
            found.append(at.aggregate(m.function, column, m.kind, skips=m.skips))
        results = {name: found[i] for name, i in self.direct.items()}
        parts = {f"__hw_m{i}": column for i, column in enumerate(found)}
        for text in self.outer:
            beside = {} if rows is None else {n: rows.column(n) for n in text.reads if n not in parts}
            made = text.run(pa.table({**{n: parts[n] for n in text.reads if n in parts}, **beside}))
            results |= {name: _one(made.column(name)) for name in made.column_names}
        return results


@dataclass(frozen=True, slots=True)
class _Framed:
    """Aggregates as window functions."""

    query: RowsQuery
    reads: tuple[str, ...]

    def run(self, rows: pa.Table) -> pa.Table:
        return self.query.run({"rows": rows.select(list(self.reads))})


_Text = RowsText | _Framed


@dataclass(frozen=True, slots=True)
class Aggregates:
    """Texts over windows. Build them with `read`.

    Attributes
    ----------
    schema : pa.Schema
        names and types of the results
    reads : tuple of str
        the columns that are needed
    ordered : tuple of str
        the columns that are read by order: where they differ, equal times need a tiebreak
    """

    schema: pa.Schema
    reads: tuple[str, ...]
    ordered: tuple[str, ...]
    fast: _Fast | None
    rest: tuple[_Text, ...]
    general: tuple[_Text, ...]

    @classmethod
    def read(cls, texts: Mapping[str, str], schema: pa.Schema, *, window: str | None = None) -> Aggregates:
        """Read texts over rows of this schema; with ``window`` (the inside of an OVER) each row has a window of its
        own.

        >>> found = Aggregates.read({"spread": "max(p) - min(p)"}, pa.schema([("p", pa.int64())]))
        >>> rows = pa.table({"p": [1, 4, 2, 2]})
        >>> [a.to_pylist() for a in found.of_windows(rows, np.array([0, 2]), np.array([2, 4]))]
        [[3, 0]]
        """
        if not texts:
            raise InputError.bad_argument("agg()", "nothing", 'a column for each aggregate: agg(mean="avg(price)")')
        for name, text in texts.items():
            if not isinstance(text, str) or not calls_in(text):
                raise InputError.bad_argument(name, text, "an aggregate in SQL, like `avg(price)`")
        whole = schema
        for name in (GROUP, TIME, PLACE):
            whole = whole.append(pa.field(name, pa.int64()))
        general = _general(texts, whole, window)
        kinds = {f.name: f.type for text in general for f in text.query.schema if f.name in texts}
        fast, slow = _fast(texts, whole, kinds, beside=window is not None)
        rest = _general({n: texts[n] for n in slow}, whole, window) if fast else general
        ordered = [
            n
            for t in texts.values()
            for c in calls_in(t)
            if c.by_order
            for n in names_in(t[c.start : c.end], schema.names)
        ]
        names = set(schema.names)
        reads = dict.fromkeys(n for text in general for n in text.reads if n in names)
        reads |= dict.fromkeys(fast.reads() if fast else ())
        fields = pa.schema([pa.field(name, kind) for name, kind in kinds.items()])
        return cls(fields, tuple(reads), tuple(dict.fromkeys(ordered)), fast, rest, general)

    def of_windows(self, table: pa.Table, lo: Places, hi: Places, *, joined: bool = False) -> list[pa.Array]:
        """One value for each window, which is a stretch of a sorted table's rows with at least one of them."""
        at = Stretches(lo, hi, joined=joined)
        try:
            found = self.fast.run(table, at, None) if self.fast else {}
            rest = self.rest
        except Unfit:
            found, rest = {}, self.general
        for text in rest:
            made = _grouped(text, table, at)
            found |= {name: _one(made.column(name)) for name in made.column_names if name != GROUP}
        return [found[name].cast(kind) for name, kind in zip(self.schema.names, self.schema.types, strict=True)]

    def of_rows(
        self, table: pa.Table, begin: int, end: int, lo: Places, hi: Places, groups: Places, times: pa.Array
    ) -> list[pa.Array]:
        """One value for each row from ``begin`` to ``end``, of its frame from ``lo`` to ``hi``."""
        try:
            found = self.fast.run(table, Stretches(lo, hi), table.slice(begin, end - begin)) if self.fast else {}
            rest = self.rest
        except Unfit:
            found, rest = {}, self.general
        places = pa.array(np.arange(table.num_rows))
        for text in rest:
            given = table.append_column(GROUP, pa.array(groups)).append_column(TIME, times)
            made = text.run(given.append_column(PLACE, places))
            order = np.argsort(made.column(PLACE).to_numpy(), kind="stable")[begin:end]
            made = made.take(pa.array(order))
            found |= {name: _one(made.column(name)) for name in made.column_names if name != PLACE}
        return [found[name].cast(kind) for name, kind in zip(self.schema.names, self.schema.types, strict=True)]


def _general(texts: Mapping[str, str], schema: pa.Schema, window: str | None) -> tuple[_Text, ...]:
    return tuple(_query(some, schema, window) for some in _some(texts))


def _named_in_turn(places: Sequence[int]) -> Callable[[Call], str]:
    """Gives the columns of these measures, one after the other."""
    coming = iter(places)
    return lambda _: f"__hw_m{next(coming)}"


def _some(texts: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """A few texts at a time: reading a query takes time that grows faster than its columns."""
    items = list(texts.items())
    yield from (dict(items[at : at + _TEXTS]) for at in range(0, len(items), _TEXTS))


def _query(texts: Mapping[str, str], schema: pa.Schema, window: str | None) -> _Text:
    if window is None:
        return of_groups([GROUP], {name: by_key(text, PLACE) for name, text in texts.items()}, schema)
    shown = ", ".join(texts.values())
    spoken = {name: over(text, window, PLACE) for name, text in texts.items()}
    text = f"SELECT {select_list([PLACE], spoken)} FROM rows"
    query = RowsQuery.read(text, {"rows": schema}, shown)
    if query.schema.names != [PLACE, *texts]:
        raise InputError.bad_argument("expression", shown, "one expression for each name")
    return _Framed(query, tuple(names_in(text, schema.names)))


def _fast(
    texts: Mapping[str, str], schema: pa.Schema, kinds: Mapping[str, pa.DataType], *, beside: bool
) -> tuple[_Fast | None, list[str]]:
    """The fast way for the texts that have one, and the names of the others."""
    measures: dict[_Measure, int] = {}
    computed: dict[str, str] = {}
    direct: dict[str, int] = {}
    outer: dict[str, str] = {}
    slow: list[str] = []
    plain = _plain(schema)
    for name, text in texts.items():
        calls = calls_in(text)
        found = _measures(calls, schema, plain, computed)
        if found is None:
            slow.append(name)
            continue
        places = [measures.setdefault(m, len(measures)) for m in found]
        if len(calls) == 1 and text.strip() == text[calls[0].start : calls[0].end]:
            direct[name] = places[0]
        else:
            outer[name] = replaced(text, _named_in_turn(places))
    if not measures:
        return None, list(texts)
    parts = pa.schema([pa.field(f"__hw_m{i}", m.kind) for m, i in measures.items()])
    around = pa.schema([*parts, *schema]) if beside else parts
    made = tuple(of_rows(some, around, ", ".join(texts[n] for n in some)) for some in _some(outer))
    if any(f.type != kinds[f.name] for text in made for f in text.query.schema):
        return None, list(texts)
    arguments = of_rows(computed, schema) if computed else None
    return _Fast(tuple(measures), arguments, made, direct), slow


def _measures(
    calls: Sequence[Call], schema: pa.Schema, plain: Mapping[str, str], computed: dict[str, str]
) -> list[_Measure] | None:
    found: list[_Measure] = []
    new: dict[str, str] = {}
    for call in calls:
        if call.function not in FUNCTIONS or call.distinct or call.tail or len(call.arguments) != 1:
            return None
        argument = call.arguments[0]
        if argument == "*":
            if call.function != "count":
                return None
            found.append(_Measure("count", None, pa.int64(), skips=False))
            continue
        column = plain.get(argument.lower())
        if column is None:
            known = computed | new
            column = next((n for n, t in known.items() if t == argument), f"__hw_a{len(known)}")
            new[column] = argument
        try:
            given = (
                of_rows({"a": argument}, schema).query.schema.types[0] if column in new else schema.field(column).type
            )
            kind = _result("first" if call.by_order else call.function, given)
        except HeadwaterError:
            # What the general way takes and this one does not understand, it need not.
            return None
        if not is_known(call.function, given):
            return None
        found.append(_Measure(call.function, column, kind, call.skips_nulls))
    computed |= new
    return found


@lru_cache(maxsize=1_000)
def _result(function: str, given: pa.DataType) -> pa.DataType:
    """The type of an aggregate of such values."""
    shown = f"min_by(a, {PLACE})" if function == "first" else f"{function}(a)"
    schema = pa.schema([pa.field(GROUP, pa.int64()), pa.field(PLACE, pa.int64()), pa.field("a", given)])
    return of_groups([GROUP], {"m": shown}, schema).query.schema.field("m").type


def _plain(schema: pa.Schema) -> dict[str, str]:
    """The columns by the texts that are just one of them."""
    found: dict[str, list[str]] = {}
    for name in schema.names:
        for text in {name.lower(), quoted(name).lower()}:
            found.setdefault(text, []).append(name)
    return {text: names[0] for text, names in found.items() if len(names) == 1}


def _grouped(text: _Text, table: pa.Table, at: Stretches) -> pa.Table:
    """The general way: the rows of each window with its number, in pieces of bounded size."""
    read = table.select([n for n in text.reads if n in table.column_names])
    pieces: list[pa.Table] = []
    for first, last in _batches(at.lengths):
        lengths = at.lengths[first:last]
        groups = np.repeat(np.arange(first, last), lengths)
        if at.joined:
            begin = int(at.lo[first])
            places = np.arange(begin, begin + len(groups))
            rows = read.slice(begin, len(groups))
        else:
            places = np.arange(len(groups)) + np.repeat(at.lo[first:last] - (np.cumsum(lengths) - lengths), lengths)
            rows = read.take(pa.array(places))
        given = rows.append_column(GROUP, pa.array(groups)) if rows.num_columns else pa.table({GROUP: groups})
        pieces.append(text.run(given.append_column(PLACE, pa.array(places))))
    made = pa.concat_tables(pieces) if pieces else text.query.schema.empty_table()
    order = np.argsort(made.column(GROUP).to_numpy(), kind="stable")
    return made.take(pa.array(order))


def _batches(lengths: Places) -> Iterator[tuple[int, int]]:
    """Windows that are at most so many rows together, or one that is more."""
    ends = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _BATCH_ROWS, "right")))
        yield first, last
        first = last


def _one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], column.type)
    return whole
