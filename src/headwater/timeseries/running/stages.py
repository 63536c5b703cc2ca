"""From a plan to Spark: which operators run as Spark's own, which in tasks of ours, and where rows are exchanged.

A node becomes one of three things:

- *open*: sources and what is done row by row to them. Nothing is decided yet; they can be read by tasks of ours, which
  is cheaper if an ordered operator follows, or by Spark.
- a *frame*: Spark's own operators. A node whose form in Spark is the cheaper one (`frame_first`, for some from so many
  bytes on) becomes a frame if its inputs can.
- a *pipe*: tables in tasks (`pipes`). Row-wise nodes are added to the task; keyed ones too, where the rows that agree
  in their keys are together already; else rows are exchanged.

A frame that is followed by a kernel is handed to tasks as Arrow, and a pipe that is followed by an operator of Spark's
gives it rows. The number of buckets follows the size of what is exchanged. In a session that is not ANSI and UTC a text
of Spark's would mean something else than in tasks, so there everything runs in tasks. Who measures both forms can say
which it should be (`Strategy`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from headwater.base.schema import Schema
from headwater.spark import blocks
from headwater.spark.blocks import ByKeys, Placement
from headwater.spark.failures import told
from headwater.spark.figures import Counted, Figures, new_mark
from headwater.spark.meaning import other_meaning
from headwater.timeseries.node import Gathered, Keyed, Node, RowWise, Stacked, StreamKernel
from headwater.timeseries.operators.values import Values
from headwater.timeseries.present_times import present_in_frame
from headwater.timeseries.rows import Rows
from headwater.timeseries.running.here import run_here
from headwater.timeseries.running.narrowing import narrowed
from headwater.timeseries.running.pipes import Batches, Pipe, Sample, Stage, meeting, stacked
from headwater.timeseries.running.reasons import OWN_FORM, amount, exchange_reasons
from headwater.timeseries.running.writing import PipeRows
from headwater.timeseries.slices import HotKey, Sliced, hot_keys
from headwater.timeseries.sources.source import Size, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Run", "Strategy"]

Strategy = Literal["auto", "blocks", "spark"]
"""Whether an operator that has both forms runs in the cheaper one, in tasks of ours, or as Spark's own."""

_BUCKET_BYTES = 32 << 20
_SMALL_BYTES = 1 << 20
_GIVEN_BYTES = 8 << 20
"""A side of a join that is smaller than this is given to every task."""
_SLICED_ROWS = 1_000_000
_SAMPLE_ROWS = 100_000


@dataclass(frozen=True)
class _Open:
    node: Node


@dataclass(frozen=True)
class _Framed:
    frame: DataFrame
    schema: pa.Schema
    stage: Stage
    size: Size


_Made = _Open | _Framed | Pipe


class Run:
    """One plan on one session."""

    def __init__(self, session: SparkSession, plan: Node, *, strategy: Strategy = "auto") -> None:
        self.session, self.plan, self.strategy = session, narrowed(plan), strategy
        self.figures = Figures()
        """What the tasks of its actions did."""
        self._made: dict[int, _Made] = {}
        self._other = other_meaning(session)

    def frame(self) -> DataFrame:
        """The plan's rows as a frame of Spark's."""
        return self._framed(self._make(self.plan)).frame

    def collect(self) -> pa.Table:
        """The plan's rows, here."""
        made = self._make(self.plan)
        if isinstance(made, _Framed):
            with told():
                return made.frame.toArrow().cast(made.schema)
        return self._piped(made).collect(self.figures)

    def batches(self) -> Iterator[pa.Table]:
        """The plan's rows, table by table, as tasks finish."""
        pipe = self.pipe()
        with told():
            yield from blocks.streamed(pipe.frame, pipe.source, pipe.schema, self.figures)

    def count(self) -> int:
        """How many rows there are."""
        made = self._make(self.plan)
        if isinstance(made, _Framed):
            with told():
                return made.frame.count()
        pipe = self._piped(made)
        found = blocks.results_of(pipe.frame, pipe.source, _count, "rows long", self.figures)
        return sum(found["rows"].to_pylist())

    def rows(self) -> DataFrame | PipeRows:
        """The plan's rows, for the lake to write: by Spark where they are its own, else by the tasks."""
        made = self._make(self.plan)
        return made.frame if isinstance(made, _Framed) else PipeRows(self._piped(made), self.figures)

    def pipe(self) -> Pipe:
        """The plan's rows in tasks, for a sink of one's own."""
        return self._piped(self._make(self.plan))

    def stage(self) -> Stage:
        """What would run."""
        made = self._make(self.plan)
        return made.stage if isinstance(made, _Framed) else self._piped(made).stage

    # ------------------------------------------------------------------ nodes

    def _make(self, node: Node) -> _Made:
        made = self._made.get(id(node))
        if made is None:
            made = self._made[id(node)] = self._new(node)
        return made

    def _new(self, node: Node) -> _Made:
        if isinstance(node, Source | Values):
            return _Open(node)
        below = [self._make(i) for i in node.inputs]
        if isinstance(node, RowWise) and isinstance(below[0], _Open):
            return _Open(node)
        if _has_frame(node) and self._wants_frame(node, below):
            found = self._as_frame(node, below)
            if found is not None:
                return found
        if isinstance(node, RowWise):
            return self._row_wise(node, self._piped(below[0]))
        if isinstance(node, Keyed):
            return self._keyed(node, below)
        if isinstance(node, Gathered):
            return self._gathered(node, self._piped(below[0]).timed(node.time_columns()[0]))
        if isinstance(node, Stacked):
            return self._stacked(node, [self._piped(b) for b in below])
        found = self._as_frame(node, below)
        assert found is not None, f"{type(node).__name__} has no form that can be run"
        return found

    def _wants_frame(self, node: Node, below: Sequence[_Made]) -> bool:
        if self.strategy != "auto":
            return self.strategy == "spark"
        if self._other is not None or any(isinstance(b, Pipe) for b in below):
            return False
        if node.frame_first:
            return not node.frame_from_bytes or _read_bytes(below) >= node.frame_from_bytes
        return isinstance(node, RowWise) and any(isinstance(b, _Framed) for b in below)

    def _as_frame(self, node: Node, below: Sequence[_Made]) -> _Framed | None:
        inputs = [self._framed(b) for b in below]
        timed = zip(inputs, node.time_columns(), strict=True)
        frame = node.frame(*[i.frame if t is None else present_in_frame(i.frame, t) for i, t in timed])
        if frame is None:
            return None
        stage = Stage((node.line(),), "Spark's own form of it", tuple(i.stage for i in inputs), OWN_FORM)
        return _Framed(frame, node.schema, stage, _sum([i.size for i in inputs]))

    def _row_wise(self, node: RowWise, pipe: Pipe) -> Pipe:
        kept = None if pipe.keys is None else [node.kept(k) for k in pipe.keys]
        keys = None if kept is None or None in kept else tuple(k for k in kept if k is not None)
        return pipe.row_wise(node.kernel(), node.schema, node.line(), keys)

    def _keyed(self, node: Keyed, below: Sequence[_Made]) -> Pipe:
        times = node.time_columns()
        if node.takes_whole_second and (second := self._small(below[1])) is not None:
            line = (
                f"{node.line()}, with all {second.num_rows:,} rows of the other side in each task, since they are "
                f"{amount(second.nbytes)}"
            )
            return self._piped(below[0]).timed(times[0]).beside(node.kernel(), second, node.schema, line, times[1])
        pipes = [self._coded(b, keys).timed(t) for b, keys, t in zip(below, node.keys(), times, strict=True)]
        if len(pipes) == 1 and _together(pipes[0], node.keys()[0]):
            return pipes[0].in_place(node.kernel(), node.schema, node.line(), node.output_keys())
        parts = self.buckets(_sum([p.size for p in pipes]))
        buckets = parts if all(node.keys()) else 1
        hot = self._hot(node, pipes, parts)
        why = exchange_reasons(node, [p.size for p in pipes], hot, _GIVEN_BYTES, self._other)
        stage = Stage((node.line(),), _exchange(node, buckets, hot), tuple(p.stage for p in pipes), why)
        pipe = meeting(pipes, _placements(node, buckets, hot), node.kernel(), node.schema, stage, node.keys())
        return replace(pipe, keys=None if hot else node.output_keys())

    def _coded(self, made: _Made, keys: tuple[str, ...]) -> Pipe:
        """In tasks, and where they go to an exchange as they are read, with keys as the files have them."""
        if isinstance(made, _Open) and isinstance(made.node, Source):
            return self._open_pipe(made.node.coded(keys))
        return self._piped(made)

    def _small(self, made: _Made) -> pa.Table | None:
        """The rows of a side that is small enough to be given to every task."""
        if not isinstance(made, _Open):
            return None
        size = _known_size(made.node)
        if size is None or size > _GIVEN_BYTES:
            return None
        rows = run_here(made.node)
        return rows if rows.nbytes <= _GIVEN_BYTES else None

    def _hot(self, node: Keyed, pipes: Sequence[Pipe], parts: int) -> tuple[HotKey, ...]:
        """Keys that are more than one of so many tasks should have, where the operator can do with a part of one;
        no key at all is one.
        """
        slicing, known = node.slicing(), _sum([p.size for p in pipes]).rows
        if slicing is None or parts == 1 or (known is not None and known < _SLICED_ROWS):
            return ()
        read = [[*keys, s.time] for keys, s in zip(node.keys(), slicing, strict=True)]
        samples = [None if p.sample is None else p.sample(names) for p, names in zip(pipes, read, strict=True)]
        found = [(s.table, s.weight) for s in samples if s is not None]
        rows = known if known is not None else sum(s.rows for s in samples if s is not None)
        if len(found) < len(pipes) or rows < _SLICED_ROWS:
            return ()
        return hot_keys(found, node.keys(), [s.time for s in slicing], max(_SLICED_ROWS / 4, rows / parts))

    def _gathered(self, node: Gathered, pipe: Pipe) -> Pipe:
        partial, finish = node.kernels()
        parts = pipe.all_tables(partial, node.partial_schema, f"{node.line()}, where the rows are")
        stage = Stage((node.line(),), "exchange of what is left into one", (parts.stage,))
        return meeting([parts], [ByKeys((), 1)], _Finish(finish), node.schema, stage)

    def _stacked(self, node: Stacked, pipes: Sequence[Pipe]) -> Pipe:
        shaped = [p.row_wise(k, node.schema, "as one", None) for p, k in zip(pipes, node.kernels(), strict=True)]
        stage = Stage((node.line(),), "one after the other", tuple(p.stage for p in pipes))
        return stacked(shaped, node.schema, stage)

    def buckets(self, size: Size) -> int:
        """Into how many buckets rows are put: one for so many bytes,
        and no fewer than Spark would make if it is worth it.
        """
        usual = int(str(self.session.conf.get("spark.sql.shuffle.partitions", "8")))
        if size.bytes is None:
            return usual
        worth = max(1, size.bytes // _SMALL_BYTES)
        needed = -(-size.bytes // _BUCKET_BYTES)
        # So many rounds of as many tasks as Spark would make: none of them waits for a last few.
        return min(usual, worth) if needed <= usual else -(-needed // usual) * usual

    # ------------------------------------------------------------------ from one thing to another

    def _framed(self, made: _Made) -> _Framed:
        from headwater.lake.spark.types import spark_struct

        if isinstance(made, _Framed):
            return made
        if isinstance(made, Pipe):
            canonical = Schema.from_arrow(made.schema)
            frame = blocks.rows_of(made.frame, made.source, _loose(canonical.arrow), spark_struct(canonical))
            return _Framed(frame, made.schema, made.stage, made.size)
        return self._open_frame(made.node)

    def _open_frame(self, node: Node) -> _Framed:
        if isinstance(node, Source):
            return _Framed(node.spark(self.session), node.schema, Stage((node.line(),), "Spark's own scan"), node.size)
        if isinstance(node, Values):
            frame = self._values(node.table)
            size = Size(node.table.num_rows, node.table.nbytes)
            return _Framed(frame, node.schema, Stage((node.line(),), "rows of the driver"), size)
        if self._other is not None and self.strategy != "spark":
            return self._framed(self._open_pipe(node))
        below = self._open_frame(node.inputs[0])
        frame_of = node.frame(below.frame) if _has_frame(node) else None
        if frame_of is None:
            return self._framed(self._open_pipe(node))
        return _Framed(frame_of, node.schema, below.stage.then(node.line()), below.size)

    def _values(self, table: pa.Table) -> DataFrame:
        from headwater.lake.spark.types import spark_struct

        # With the types said: else Spark takes times without a zone for times of the session's zone.
        struct = spark_struct(Schema.from_arrow(table.schema))
        # Spark cannot make a frame of nested columns that have no chunk.
        return self.session.createDataFrame(table if table.num_rows else [], struct)

    def _piped(self, made: _Made) -> Pipe:
        if isinstance(made, Pipe):
            return made
        if isinstance(made, _Framed):
            stage = Stage((), "rows of Spark's as Arrow", (made.stage,), arrival=new_mark())
            assert stage.arrival is not None
            return Pipe(made.frame, Counted(Batches(made.schema), stage.arrival), made.schema, stage, made.size)
        return self._open_pipe(made.node)

    def _open_pipe(self, node: Node) -> Pipe:
        if isinstance(node, RowWise):
            return self._row_wise(node, self._open_pipe(node.inputs[0]))
        tasks = node.tasks() if isinstance(node, Source) else None
        if tasks is None:
            return self._piped(self._open_frame(node))
        assert isinstance(node, Source)
        frame, source = blocks.tasks_of(self.session, tasks.count, tasks.work)
        mark = new_mark()
        stage = Stage((node.line(),), f"{tasks.count} tasks read files", marks=(mark,))

        def sample(names: Sequence[str] | None) -> Sample | None:
            assert isinstance(node, Source)
            known = node.rows_about()
            rows = (node if names is None else node.narrowed(list(names))).sample(_SAMPLE_ROWS) if known else None
            return (
                None if rows is None or not rows.num_rows or not known else Sample(rows, known / rows.num_rows, known)
            )

        return Pipe(frame, Counted(source, mark), node.schema, stage, node.size, sample=sample)


def _count(tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    rows = sum(table.num_rows for table in tables)
    yield pa.RecordBatch.from_arrays([pa.array([rows], pa.int64())], names=["rows"])


@dataclass(frozen=True, slots=True)
class _Finish:
    finish: StreamKernel

    def __call__(self, rows: Rows) -> Iterator[pa.Table]:
        return self.finish(iter(rows))


def _read_bytes(below: Sequence[_Made]) -> float:
    """How many bytes tasks would read themselves; without end, if Spark has the rows already or nobody knows."""
    total = 0.0
    for made in below:
        node: Node | None = made.node if isinstance(made, _Open) else None
        while isinstance(node, RowWise):
            node = node.inputs[0]
        size = _known_size(node) if isinstance(node, Source) else None
        total += math.inf if size is None else size
    return total


def _known_size(node: Node) -> int | None:
    """How many bytes there are at most, below operators that make no more of them."""
    if isinstance(node, Values):
        return int(node.table.nbytes)
    if isinstance(node, Source):
        return node.size.bytes if node.tasks() is not None else None
    return _known_size(node.inputs[0])


def _placements(node: Keyed, buckets: int, hot: tuple[HotKey, ...]) -> list[Placement]:
    columns, slicing = node.keys(), node.slicing()
    if not hot or slicing is None:
        return [ByKeys(keys, buckets) for keys in columns]
    return [
        Sliced(keys, s.time, buckets, hot, s.before, s.after, s.reach, s.values, s.own)
        for keys, s in zip(columns, slicing, strict=True)
    ]


def _exchange(node: Keyed, buckets: int, hot: tuple[HotKey, ...]) -> str:
    by = ", ".join(node.keys()[0])
    slices = sum(len(h.cuts) + 1 for h in hot)
    if not by:
        return f"exchange by time into {slices}" if hot else "exchange: everything into one"
    more = f", {len(hot)} hot {'key' if len(hot) == 1 else 'keys'} cut by time into {slices}" if hot else ""
    return f"exchange by {by} into {buckets}{more}"


def _has_frame(node: Node) -> bool:
    return type(node).frame is not Node.frame


def _together(pipe: Pipe, keys: tuple[str, ...]) -> bool:
    """Rows that agree in more columns than they were put together by are together as well."""
    return pipe.keys is not None and bool(pipe.keys) and set(pipe.keys) <= set(keys)


def _sum(sizes: Sequence[Size]) -> Size:
    total = sizes[0]
    for size in sizes[1:]:
        total += size
    return total


def _loose(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_nullable(True) for f in schema])
