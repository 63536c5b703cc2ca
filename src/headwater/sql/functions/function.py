"""What the catalogue knows of one function: how its arguments are typed, and what it is in each engine.

``build`` takes typed arguments and gives a node (or raises `Refused`), so the typing of a function is one Python function. ``forms``
holds DuckDB's SQL of the operators that ``build`` may put into the tree: a template (``{0}`` is the first
operand, ``{type}`` the result's type) or a function of the node and its operands' SQL. A function that takes ``lambdas`` is given
them as `Unbound`, and binds them to the types of their parameters. What circuits compute themselves, without an engine, is in
`headwater.sql.vectorised`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.sql.nodes import AggregateCall, Call, Node, WindowCall

__all__ = ["MANY", "AggregateForm", "Apply", "Builder", "Form", "Function", "overloaded"]

MANY = 10_000
Builder = Callable[[Sequence[Node]], Node]
Form = str | Callable[[Call, list[str]], str]
# ``apply("sum", "x")`` writes sum(x) with the call's own DISTINCT, FILTER and OVER.
Apply = Callable[..., str]
AggregateForm = Callable[[AggregateCall | WindowCall, list[str], Apply], str]


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


def overloaded(plain: Builder, nested: Builder) -> Builder:
    """One name for two functions: ``nested`` is for arrays, ``plain`` for all else."""

    def build(args: Sequence[Node]) -> Node:
        return (nested if any(pa.types.is_nested(a.dtype) for a in args) else plain)(args)

    return build
