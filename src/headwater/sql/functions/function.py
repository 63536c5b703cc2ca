"""What the catalogue knows of one function: how its arguments are typed, and what it is in each engine.

``build`` takes typed arguments and gives a node (or raises `Refused`), so the typing of a function is one Python
function. ``forms`` holds DuckDB's SQL of the operators that ``build`` may put into the tree: a template (``{0}`` is the
first operand, ``{type}`` the result's type) or a function of the node and its operands' SQL. A function that takes
``lambdas`` is given them as `Unbound`, and binds them to the types of their parameters. What circuits compute
themselves, without an engine, is in `headwater.sql.vectorised`.

``spark`` names the classes of Spark's analyzed plans that are calls of the function with their children as arguments.

``empty`` is what an aggregate gives for no rows: null, 0, an empty list, or a value of its own.

``by_order`` says whether an aggregate or window function depends on the order of its rows, and how. Everything that
has to break ties reads it here, through `headwater.sql.functions.catalogue.by_order`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from headwater.sql.nodes import AggregateCall, Call, Node, WindowCall

__all__ = ["MANY", "AggregateForm", "Apply", "Builder", "ByOrder", "Form", "Function", "overloaded"]

MANY = 10_000
Builder = Callable[[Sequence[Node]], Node]
Form = str | Callable[[Call, list[str]], str]
# ``apply("sum", "x")`` writes sum(x) with the call's own DISTINCT, FILTER and OVER.
Apply = Callable[..., str]
AggregateForm = Callable[[AggregateCall | WindowCall, list[str], Apply], str]
ByOrder = Literal["no", "peers", "rows", "place", "extreme", "list"]
"""How an answer depends on the order of the rows:

- ``no``: it does not;
- ``peers``: on the order of the window, in which rows that tie are alike (rank);
- ``rows``: rows are counted one by one, so a tie has to be broken (row_number, lag);
- ``place``: it is the value of the row at a place of the group or frame (first, nth_value);
- ``extreme``: it is chosen by comparing; values that compare as equal may differ (max_by, mode, signs of zeros);
- ``list``: it shows all values in their order (collect_list, listagg).
"""


@dataclass(frozen=True, slots=True)
class Function:
    """One function of Spark's, under one name."""

    name: str
    family: str
    build: Builder
    least: int
    most: int
    forms: Mapping[str, Form] = field(default_factory=dict)
    kind: str = "scalar"
    aggregate_form: AggregateForm | None = None
    note: str = ""
    lambdas: bool = False
    by_order: ByOrder = "no"
    spark: tuple[str, ...] = ()
    empty: object = None


def overloaded(plain: Builder, nested: Builder) -> Builder:
    """One name for two functions: ``nested`` is for arrays, ``plain`` for all else."""

    def build(args: Sequence[Node]) -> Node:
        return (nested if any(pa.types.is_nested(a.dtype) for a in args) else plain)(args)

    return build
