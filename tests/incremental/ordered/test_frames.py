"""Functions over frames: every step equals a recomputation with fractions, and the windows of DuckDB."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.amounts import everyday
from tests.incremental.ordered.histories import Play, Row, Source, Table, arranged, compared, sorted_groups

from headwater.base.errors import ExpressionError, InputError, UnsupportedError
from headwater.incremental.layout import Order
from headwater.incremental.operators.frames import Frame, FrameFunction, Frames

WIDE = 10**25

MAKE: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "int": (pa.int64(), lambda i: i - 4),
    "date": (pa.date32(), lambda i: date(1969, 12, 28) + timedelta(days=i)),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        lambda i: datetime(1969, 12, 31, 23, 59, 55, tzinfo=UTC) + timedelta(seconds=i),
    ),
    "decimal": (pa.decimal128(10, 2), lambda i: Decimal(i - 4).scaleb(-2)),
    "wide": (pa.decimal128(38, 0), lambda i: Decimal((i - 4) * WIDE)),
    "string": (pa.string(), lambda i: "abcdefghijkl"[i] * (1 + 7 * (i % 3))),
    "double": (pa.float64(), lambda i: [math.nan, -math.inf, 0.5, -2.0, 1e300, 0.0, 3.0, math.inf, 1.0, -1.0][i]),
}
UNIT: dict[str, Callable[[int], Any]] = {
    "int": lambda n: n,
    "date": lambda n: timedelta(days=n),
    "timestamp": lambda n: timedelta(seconds=n),
    "decimal": lambda n: Decimal(n).scaleb(-2),
    "wide": lambda n: n * WIDE,
}
BROAD = pa.decimal128(25, 3)


def schema(kind: str) -> pa.Schema:
    return pa.schema(
        [
            pa.field("k", pa.int64(), nullable=False),
            pa.field("t", MAKE[kind][0]),
            pa.field("i", pa.int64()),
            pa.field("f", pa.float64(), nullable=False),
            pa.field("d", pa.decimal128(9, 2)),
            pa.field("b", BROAD, nullable=False),
            pa.field("s", pa.string()),
        ]
    )


DOUBLES = [0.1, 0.2, 1e16, -1e16, 1e-300, 3.5, -0.1, 2.0**60, 5e-324]


def draw_of(kind: str) -> Callable[[np.random.Generator], Row]:
    make = MAKE[kind][1]

    def draw(rng: np.random.Generator) -> Row:
        small = int(rng.integers(5))
        return (
            int(rng.integers(2)),
            None if rng.random() < 0.12 else make(int(rng.integers(10))),
            None if rng.random() < 0.2 else small,
            DOUBLES[int(rng.integers(len(DOUBLES)))],
            None if rng.random() < 0.2 else Decimal(int(rng.integers(-500, 500))).scaleb(-2),
            Decimal(int(rng.integers(-3, 4)) * 10**20 + small).scaleb(-3),
            [None, "", "x", "a rather long string to have", "a rather long string to hold"][small],
        )

    return draw


FUNCTIONS = [
    FrameFunction("n", "count_rows"),
    FrameFunction("ni", "count", "i"),
    FrameFunction("si", "sum", "i"),
    FrameFunction("sf", "sum", "f"),
    FrameFunction("sd", "sum", "d"),
    FrameFunction("sb", "sum", "b"),
    FrameFunction("ai", "avg", "i"),
    FrameFunction("ad", "avg", "d"),
    FrameFunction("mi", "min", "i"),
    FrameFunction("xf", "max", "f"),
    FrameFunction("xb", "max", "b"),
    FrameFunction("ms", "min", "s"),
    FrameFunction("fi", "first_value", "i"),
    FrameFunction("ls", "last_value", "s"),
    FrameFunction("li", "last_value", "i", ignore_nulls=True),
    FrameFunction("n2", "nth_value", "i", 2),
    FrameFunction("n2i", "nth_value", "i", 2, True),
    FrameFunction("vi", "var_pop", "i"),
    FrameFunction("vb", "stddev_samp", "b"),
]


def value_of(f: FrameFunction, rows: Sequence[Row], place: dict[str, int]) -> Any:
    if f.what == "count_rows":
        return len(rows)
    assert f.column is not None
    column = [r[place[f.column]] for r in rows]
    values = [v for v in column if v is not None]
    if f.what == "count":
        return len(values)
    if f.what in {"first_value", "last_value", "nth_value"}:
        those = values if f.ignore_nulls else column
        if f.what == "last_value":
            return those[-1] if those else None
        nth = f.nth if f.what == "nth_value" else 1
        return those[nth - 1] if len(those) >= nth else None
    if not values:
        return None
    if f.what in {"min", "max"}:
        return min(values) if f.what == "min" else max(values)
    exact = [Fraction(v) for v in values]
    total = sum(exact, Fraction(0))
    if f.what == "sum":
        if isinstance(values[0], Decimal):
            return _decimal(total, 2 if f.column == "d" else 3)
        return float(total) if isinstance(values[0], float) else int(total)
    if f.what == "avg":
        if isinstance(values[0], Decimal):
            return _decimal(total / len(values), 6)
        return float(total) / len(values)
    mean = total / len(values)
    spread = sum(((v - mean) ** 2 for v in exact), Fraction(0))
    few = len(values) - (f.what.endswith("_samp"))
    if not few:
        return None
    return math.sqrt(spread / few) if f.what.startswith("stddev") else float(spread / few)


def _decimal(value: Fraction, scale: int) -> Decimal:
    with localcontext() as context:
        context.prec = 80
        found = Decimal(value.numerator) / Decimal(value.denominator)
        return found.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)


def inside(frame: Frame, rows: Sequence[Row], peers: Sequence[int], i: int, order: Order, at: int) -> list[Row]:
    if frame.unit == "rows":
        a = 0 if frame.begin is None else i + int(frame.begin)  # type: ignore[arg-type]
        b = len(rows) if frame.end is None else i + int(frame.end) + 1  # type: ignore[arg-type]
        return list(rows[max(a, 0) : max(b, 0)])
    mine = rows[i][at]
    found = []
    for j, row in enumerate(rows):
        ok = True
        for bound, side in ((frame.begin, 1), (frame.end, -1)):
            if bound is None:
                continue
            if mine is None or bound == 0:
                ok &= side * (peers[j] - peers[i]) >= 0
                continue
            if row[at] is None:
                ok &= side * compared(row[at], mine, nulls_first=bool(order.nulls_first)) > 0
                continue
            edge = mine - bound if order.descending else mine + bound
            ok &= side * compared(row[at], edge, descending=order.descending) >= 0
        if ok:
            found.append(row)
    return found


def expected(table: Table, frame: Frame, functions: Sequence[FrameFunction], order: Order, names: list[str]) -> Table:
    place = {name: i for i, name in enumerate(names)}
    at = place[order.column]
    out: Table = Counter()
    for rows, peers in sorted_groups(table, [0], [(at, order)]):
        for i, row in enumerate(rows):
            those = inside(frame, rows, peers, i, order, at)
            out[(*row, *(value_of(f, those, place) for f in functions))] += 1
    return out


def rounded(table: Table) -> Table:
    """Deviations are the only results that are not exact."""
    out: Table = Counter()
    for row, weight in table.items():
        out[
            tuple(
                round(v, 9 - int(math.log10(abs(v)))) if i >= 24 and isinstance(v, float) and v else v
                for i, v in enumerate(row)
            )
        ] += weight
    return out


BY_ROWS = [(-2, 0), (-1, 1), (None, 0), (0, None), (-3, -1), (1, 2), (None, None), (0, 0)]


def check(kind: str, frame: Frame, order: Order, seed: int, steps: int = 25) -> None:
    source = Source(schema(kind))
    play = Play(Frames(arranged(source, ["k"], [order]), FUNCTIONS, frame=frame), [source], [draw_of(kind)])
    rng = np.random.default_rng(seed)
    for step in range(everyday(steps * 3 // 5, soak=steps)):
        play.step(play.random(rng))
        wanted = expected(play.tables[0], frame, FUNCTIONS, order, source.layout.names)
        wanted = Counter({tuple("nan" if v != v else v for v in row): w for row, w in wanted.items()})
        assert rounded(play.output) == rounded(wanted), f"step {step}"


@pytest.mark.parametrize("bounds", BY_ROWS, ids=str)
def test_rows_frames_equal_recomputation(bounds: tuple[int | None, int | None]) -> None:
    check("int", Frame("rows", *bounds), Order("t"), seed=1)


@pytest.mark.parametrize("bounds", [(-2, 1), (None, 0)], ids=str)
@pytest.mark.parametrize("kind", ["string", "double"])
def test_rows_frames_order_by_anything(kind: str, bounds: tuple[int | None, int | None]) -> None:
    check(kind, Frame("rows", *bounds), Order("t", descending=True), seed=2)


ORDERS = [
    Order("t"),
    Order("t", descending=True),
    Order("t", nulls_first=False),
    Order("t", descending=True, nulls_first=True),
]


@pytest.mark.parametrize("order", ORDERS, ids=["asc", "desc", "asc nulls last", "desc nulls first"])
@pytest.mark.parametrize(
    "bounds", [(-2, 0), (-1, 2), (None, 0), (0, 0), (0, None), (1, 3), (-3, -2), (None, -1), (2, None)], ids=str
)
def test_range_frames_equal_recomputation(bounds: tuple[int | None, int | None], order: Order) -> None:
    check("int", Frame("range", *bounds), order, seed=3, steps=15)


@pytest.mark.parametrize("kind", ["date", "timestamp", "decimal", "wide"])
@pytest.mark.parametrize("descending", [False, True], ids=["asc", "desc"])
def test_range_distances_of_each_type(kind: str, descending: bool) -> None:
    unit = UNIT[kind]
    check(kind, Frame("range", unit(-2), unit(1)), Order("t", descending=descending), seed=4, steps=15)


@pytest.mark.parametrize("kind", ["string", "double"])
def test_peers_of_any_type(kind: str) -> None:
    check(kind, Frame("range", None, 0), Order("t"), seed=5)
    check(kind, Frame("range", 0, 0), Order("t", descending=True), seed=6)


def test_equals_duckdb() -> None:
    bound = "RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING"
    kind = "int"
    source = Source(schema(kind))
    functions = [f for f in FUNCTIONS if f.name in {"n", "ni", "si", "mi", "xf", "sd", "ms"}]
    node = Frames(arranged(source, ["k"], [Order("t")]), functions, frame=Frame("range", -2, 1))
    play = Play(node, [source], [draw_of(kind)])
    rng = np.random.default_rng(11)
    for _ in range(everyday(12, soak=20)):
        play.step(play.random(rng, 30))
        rows = [row for row, w in play.tables[0].items() for _ in range(w)]
        table = source.change([(row, 1) for row in rows]).to_arrow().drop(["_weight"])
        with duckdb.connect() as db:
            db.register("t", table)
            found = db.execute(
                f"SELECT k, t, i, f, d, b, s, count(*) OVER w, count(i) OVER w, sum(i) OVER w, sum(d) OVER w, min(i) OVER w, "
                f"max(f) OVER w, min(s) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY t NULLS FIRST {bound})"
            ).fetchall()
        assert Counter(found) == play.output


def test_sums_of_doubles_do_not_depend_on_history() -> None:
    sc = pa.schema([pa.field("t", pa.int64(), nullable=False), pa.field("f", pa.float64())])
    source = Source(sc)
    frame = Frame("rows", None, 0)
    functions = [FrameFunction("s", "sum", "f"), FrameFunction("a", "avg", "f"), FrameFunction("d", "stddev_pop", "f")]
    play = Play(Frames(arranged(source, [], [Order("t")]), functions, frame=frame), [source], [lambda r: ()])
    play.step([[((0, 1e300), 1), ((1, math.inf), 1), ((2, 0.1), 1), ((3, math.nan), 1), ((4, -math.inf), 1)]])
    play.step([[((0, 1e300), -1), ((1, math.inf), -1), ((3, math.nan), -1), ((4, -math.inf), -1), ((5, 0.2), 1)]])
    assert play.output == Counter(
        {(2, 0.1, 0.1, 0.1, 0.0): 1, (5, 0.2, math.fsum([0.1, 0.2]), math.fsum([0.1, 0.2]) / 2, 0.05): 1}
    )


def test_a_sum_that_does_not_fit_is_an_error_and_changes_nothing() -> None:
    sc = pa.schema([pa.field("t", pa.int64(), nullable=False), pa.field("i", pa.int64())])
    source = Source(sc)
    arrange = arranged(source, [], [Order("t")])
    node = Frames(arrange, [FrameFunction("s", "sum", "i")], frame=Frame("rows", -1, 0))
    delta = arrange.step([source.change([((1, 2**63 - 1), 1), ((2, 1), 1)])])
    with pytest.raises(ExpressionError, match="does not fit a bigint"):
        node.step([delta])
    arrange.rollback()
    assert len(arrange.trace) == 0


def test_what_is_refused() -> None:
    source = Source(schema("string"))
    with pytest.raises(UnsupportedError, match="has type string"):
        Frames(arranged(source, ["k"], [Order("t")]), FUNCTIONS[:1], frame=Frame("range", -1, 0))
    with pytest.raises(UnsupportedError, match="the order has 2 columns"):
        Frames(arranged(source, ["k"], [Order("i"), Order("f")]), FUNCTIONS[:1], frame=Frame("range", -1, 0))
    with pytest.raises(InputError, match="not before the begin"):
        Frames(arranged(source, ["k"], [Order("i")]), FUNCTIONS[:1], frame=Frame("rows", 1, 0))
    with pytest.raises(InputError, match="whole number of units"):
        Frames(arranged(source, ["k"], [Order("i")]), FUNCTIONS[:1], frame=Frame("range", timedelta(days=-1), 0))
    with pytest.raises(UnsupportedError, match="sum takes numbers"):
        Frames(arranged(source, ["k"], [Order("i")]), [FrameFunction("x", "sum", "s")])
