"""What a condition or a measure of a row pattern reads: values of rows of the match, as calls of a typed tree.

``LAST(A.price, 1)`` is a call of ``row value`` over the plain expression ``price``, with constants for the rest: which
variables' rows, whether they are counted from the first or from the last, how many to skip, how many rows of the
partition to go on from there (PREV, NEXT), and whether the whole match is meant (FINAL) or its rows so far (RUNNING).
So the columns that a pattern reads are columns of an ordinary tree, and rules for plans see them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.sql.nodes import Call, Literal, Node, call

__all__ = ["AGGREGATE", "ALL_ROWS", "LABEL", "NUMBER", "VALUE", "Place", "RowAggregate", "aggregate_of", "place_of"]

VALUE, AGGREGATE, LABEL, NUMBER = "row value", "row aggregate", "row label", "match number"
ALL_ROWS: tuple[str, ...] = ()
"""The variables of a value that is of any row of the match."""

_STRING, _INT, _LONG, _BOOL = pa.string(), pa.int32(), pa.int64(), pa.bool_()


@dataclass(frozen=True, slots=True)
class Place:
    """A row of the match, or one near it.

    Parameters
    ----------
    variables
        the rows that count, by what they were matched to; `ALL_ROWS` for every one
    first
        is it counted from the first of them, or from the last?
    skipped
        how many are passed over
    shift
        how many rows of the partition lie between that row and the one that is meant; negative before it
    final
        is the whole match meant, or its rows up to the current one?
    """

    variables: tuple[str, ...] = ALL_ROWS
    first: bool = False
    skipped: int = 0
    shift: int = 0
    final: bool = False

    def value(self, node: Node) -> Call:
        """The value of an expression in that row."""
        return call(VALUE, (node, *self._constants()), node.dtype)

    def _constants(self) -> tuple[Literal, ...]:
        return (
            Literal("\n".join(self.variables), _STRING),
            Literal(self.first, _BOOL),
            Literal(self.skipped, _INT),
            Literal(self.shift, _INT),
            Literal(self.final, _BOOL),
        )


def place_of(node: Call) -> Place:
    """The place of a call of ``row value``.

    >>> from headwater.sql.nodes import Column
    >>> place_of(Place(("A",), skipped=2).value(Column(None, ("x",), pa.int32())))
    Place(variables=('A',), first=False, skipped=2, shift=0, final=False)
    """
    assert node.op == VALUE
    variables, first, skipped, shift, final = (a.value for a in node.args[1:] if isinstance(a, Literal))
    assert isinstance(variables, str) and isinstance(skipped, int) and isinstance(shift, int)
    return Place(_names(variables), bool(first), skipped, shift, bool(final))


@dataclass(frozen=True, slots=True)
class RowAggregate:
    """An aggregate over the rows of a match: those of some variables, for which ``where`` is true."""

    op: str
    args: tuple[Node, ...]
    dtype: pa.DataType
    variables: tuple[str, ...] = ALL_ROWS
    final: bool = False
    distinct: bool = False
    where: Node | None = None

    def call(self) -> Call:
        where = self.where if self.where is not None else Literal(True, _BOOL)
        constants = (
            Literal(self.op, _STRING),
            Literal("\n".join(self.variables), _STRING),
            Literal(self.final, _BOOL),
            Literal(self.distinct, _BOOL),
        )
        return call(AGGREGATE, (*constants, where, *self.args), self.dtype, fallible=True)


def aggregate_of(node: Call) -> RowAggregate:
    """The aggregate that a call of ``row aggregate`` stands for.

    >>> aggregate_of(RowAggregate("count", (), pa.int64(), ("A",)).call()).op
    'count'
    """
    assert node.op == AGGREGATE
    op, variables, final, distinct = (a.value for a in node.args[:4] if isinstance(a, Literal))
    where = node.args[4]
    always = isinstance(where, Literal) and where.value is True
    assert isinstance(op, str) and isinstance(variables, str)
    return RowAggregate(
        op,
        node.args[5:],
        node.dtype,
        _names(variables),
        bool(final),
        bool(distinct),
        None if always else where,
    )


def _names(variables: str) -> tuple[str, ...]:
    return tuple(variables.split("\n")) if variables else ALL_ROWS
