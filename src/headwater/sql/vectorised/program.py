"""A compiled expression: made once, in milliseconds, and run many times, in microseconds.

`Program.run` gives one value a row, with exactly the rows that `expressions.evaluate` gives; `Program.filter` the
positions for which a condition is true. A row for which Spark stops makes an `ExpressionError`, which says which row:
always the first one that fails, whatever the order in which the parts were computed. For that a failed run is repeated
on the rows before the failing one, until none of them fails.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.base.errors import ExpressionError
from headwater.base.errors.expression import REMEDY
from headwater.sql.binding import unfolded
from headwater.sql.evaluation import Expression
from headwater.sql.nodes import Call, Column, Literal, Node
from headwater.sql.types import name_of
from headwater.sql.vectorised.compiler import Compiler
from headwater.sql.vectorised.frame import Columns, Frame, RowFailed, count_true
from headwater.sql.vectorised.memory import keep_freed_memory
from headwater.sql.vectorised.vector import Vector, dense, nulls, outer

__all__ = ["Program", "compile_expression"]


class Program:
    """An expression over the columns of a schema. Build it with `compile_expression`."""

    def __init__(self, node: Node, schema: pa.Schema, text: str | None = None) -> None:
        self.node = node
        self.text = text if text is not None else written(node)
        compiler = Compiler(schema)
        root = compiler.plan(unfolded(node), compiler.root)
        self._step = compiler.build(root)
        for group in compiler.groups.values():
            group.finish()
        self._compiler = compiler
        self._regions, self._slots = compiler.regions, compiler.slots
        self.dtype: pa.DataType = node.dtype
        self.columns: tuple[int, ...] = tuple(sorted(compiler.columns))
        self.fallible: bool = node.fallible
        self.native: bool = not compiler.groups
        self._quiet = compiler.is_quiet()

    def run(self, columns: Columns, rows: int) -> Vector:
        """One value a row; ``columns`` are those of the schema, by their index.

        >>> import headwater.sql.expressions as expressions
        >>> schema = pa.schema([("a", pa.int32())])
        >>> program = compile_expression(expressions.parse("a * 2", schema=schema), schema)
        >>> program.run([Vector(pa.int32(), np.array([1, 2]))], 2).values.tolist()
        [2, 4]
        """
        read = columns if callable(columns) else columns.__getitem__
        if rows == 0:
            return outer(nulls(self.dtype, 0))
        try:
            if self._quiet:
                found = self._step(Frame(read, rows, self._slots, self._regions))
            else:
                with np.errstate(all="ignore"):
                    found = self._step(Frame(read, rows, self._slots, self._regions))
        except RowFailed as failed:
            raise self._failure(read, failed) from None
        return outer(dense(found, rows))

    def filter(self, columns: Columns, rows: int) -> npt.NDArray[np.int64] | None:
        """The positions of the rows for which a condition is true; None if it is true for all.

        >>> import headwater.sql.expressions as expressions
        >>> schema = pa.schema([("a", pa.int32())])
        >>> program = compile_expression(expressions.parse("a > 1", schema=schema), schema)
        >>> program.filter([Vector(pa.int32(), np.array([1, 2]))], 2)
        array([1])
        """
        assert pa.types.is_boolean(self.dtype), "only a condition selects rows"
        found = self.run(columns, rows)
        true = found.values if found.valid is None else found.values & found.valid
        if count_true(true) == rows:
            return None
        return np.flatnonzero(true)

    def explain(self) -> str:
        """The tree, a part a line, each with its type and whether it is DuckDB's."""
        return "\n".join(self._lines(self.node, 0))

    def _lines(self, node: Node, depth: int) -> list[str]:
        lead = "  " * depth
        if not isinstance(node, Call):
            return [f"{lead}{written(node)}: {name_of(node.dtype)}"]
        engine = "" if self._compiler.is_native(node) else " [duckdb]"
        lines = [f"{lead}{node.op}: {name_of(node.dtype)}{engine}"]
        for arg in node.args:
            lines += self._lines(arg, depth + 1)
        return lines

    def _failure(self, read: Callable[[int], Vector], failed: RowFailed) -> ExpressionError:
        """The error of the first row that fails, with the reason that it fails for alone."""
        row, reason = failed.row, failed.reason
        while row > 0:
            try:
                self._part(read, 0, row)
                break
            except RowFailed as earlier:
                row, reason = earlier.row, earlier.reason
        try:
            self._part(read, row, row + 1)
        except RowFailed as alone:
            reason = alone.reason
        if not self.columns and REMEDY not in reason:
            reason += f"{REMEDY}change the expression: it reads no column, so no row can mend it"
        error = ExpressionError.failed(self.text, reason)
        error.row = row
        return error

    def _part(self, read: Callable[[int], Vector], start: int, end: int) -> None:
        def some(index: int) -> Vector:
            vector = read(index)
            valid = None if vector.valid is None else vector.valid[start:end]
            return Vector(vector.dtype, vector.values[start:end], valid)

        with np.errstate(all="ignore"):
            self._step(Frame(some, end - start, self._slots, self._regions))


def written(node: Node, depth: int = 4) -> str:
    """A short text of a tree, for messages; what is nested deeper is left out.

    >>> written(Column(None, ("a", "b"), pa.int32()))
    'a.b'
    """
    if isinstance(node, Column):
        return ".".join(node.path)
    if isinstance(node, Literal):
        return repr(node.value)
    assert isinstance(node, Call)
    inside = ", ".join(written(a, depth - 1) for a in node.args) if depth else "…"
    return f"{node.op}({inside})"


def compile_expression(expression: Expression | Node, schema: pa.Schema) -> Program:
    """Compile an expression, or its typed tree, over the columns of a schema.

    >>> import headwater.sql.expressions as expressions
    >>> schema = pa.schema([("a", pa.int32()), ("s", pa.string())])
    >>> program = compile_expression(expressions.parse("upper(s) = 'X' AND a > 1", schema=schema), schema)
    >>> program.columns, program.dtype, program.native
    ((0, 1), DataType(bool), True)
    """
    keep_freed_memory()
    if isinstance(expression, Expression):
        return Program(expression.node, schema, expression.text)
    return Program(expression, schema)
