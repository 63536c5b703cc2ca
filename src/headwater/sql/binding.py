"""A value that is written once and used often, in the typed tree and in an engine's SQL.

Many functions of Spark's have a form in an engine's SQL that names an operand several times, and some are defined so
(``nullif(a, b)`` is ``CASE WHEN a = b THEN NULL ELSE a END``). Copying the operand doubles or triples the text at each
level of nesting. No engine here has a LET, but a lambda over a list of one element is one: ``list_transform([x], lambda
v: … v … v …)[1]``. It is used

- in the tree, by `shared`: a ``let`` node holds values and a lambda over them;
- in the SQL of a form, by `Marks`: a form is given marks in the place of its operands, and when it is written, the
  operands that it names too often for their length are bound to a variable, and the others are put in where they stand.

So text and tree grow by a constant with each function, whatever is nested in it: a small operand (a column, a short
call) may be copied, which is what optimisers like best, and a large one never is.

Invariants: a value that is bound is one that is evaluated in any case, so that what must not be evaluated is not; and
the name of a variable occurs nowhere else in the expression, so that it hides nothing.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.sql.nodes import (
    AggregateCall,
    Call,
    Column,
    Literal,
    Node,
    SubqueryCall,
    WindowCall,
    call,
    function_of,
    parts_of,
    rewrite,
    variable,
    walk,
)
from headwater.sql.types import has_void

if TYPE_CHECKING:
    from headwater.sql.nodes import Attribute

__all__ = [
    "LET",
    "WASTE",
    "Binder",
    "Marks",
    "Weights",
    "fresh",
    "has_many_rows",
    "hoisted",
    "is_plain",
    "is_small",
    "let",
    "naming",
    "parts_of_let",
    "shared",
    "unfolded",
]

LET = "let"
WASTE = 400  # characters that the copies of one operand may take in all
_SMALL = 6  # nodes of a value that is copied in the tree
_SHORT = 60
_HOISTED = "hoisted"


# --- names


@dataclass(slots=True)
class _Names:
    taken: frozenset[str]
    numbers: itertools.count[int] = field(default_factory=itertools.count)


_names: ContextVar[_Names | None] = ContextVar("names", default=None)


@contextmanager
def naming(node: Node) -> Iterator[None]:
    """While an expression is written, all its variables have different names; the outermost call decides."""
    if _names.get() is not None:
        yield
        return
    taken = frozenset(n.path[0].lower() for n in walk(node) if isinstance(n, Column))
    token = _names.set(_Names(taken))
    try:
        yield
    finally:
        _names.reset(token)


def fresh(*texts: str, stem: str = "e") -> str:
    """A name that none of the texts contains, nor anything else in the expression that is being written.

    >>> fresh("a + 1"), fresh("list_sum(e0_)")
    ('e0_', 'e1_')
    """
    names = _names.get()
    numbers = itertools.count() if names is None else names.numbers
    taken = frozenset[str]() if names is None else names.taken
    return next(
        name
        for name in (f"{stem}{number}_" for number in numbers)
        if name not in taken and not any(name in text for text in texts)
    )


# --- in an engine's SQL


@dataclass(frozen=True, slots=True)
class Binder:
    """How an engine writes ``body`` over a variable that holds one value, and over one that holds several by name."""

    one: Callable[[str, str, str], str]
    several: Callable[[Sequence[tuple[str, str]], str, str], str]
    part: Callable[[str, str], str]


_SECRET = secrets.token_hex(4)  # no text of a user's contains a mark, since nobody knows it
_mark_numbers = itertools.count()


class Marks:
    """The operands of one form. Give the form `texts`, and its SQL to `filled`."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._held: list[tuple[str, str]] = []
        self._weights: list[int] = []

    def add(self, sql: str, *, plain: bool = False, weight: int = 0) -> str:
        """One more operand; a plain one stands for itself. Gives what stands for it in the form.

        ``weight`` is the length of what an optimiser may put in its place, where that is more than its own.
        """
        text = sql
        if not plain or weight > WASTE:
            text = f"{_SECRET}m{next(_mark_numbers)}_"
            self._held.append((text, sql))
            self._weights.append(max(weight, len(sql)))
        self.texts.append(text)
        return text

    def wasteful(self, sql: str) -> bool:
        """Would the copies of an operand take too much room?"""
        held = zip(self._held, self._weights, strict=True)
        return any((sql.count(mark) - 1) * weight > WASTE for (mark, _), weight in held)

    def filled(self, sql: str, binder: Binder, *, always: bool = False) -> str:
        """The form's SQL with the operands in it, or with variables where copies would take too much room.

        >>> marks = Marks()
        >>> x = marks.add("a" * 300)
        >>> marks.filled(f"f({x}, {x})", Binder(lambda x, v, b: f"({b})", lambda *_: "", lambda *_: ""))[:10]
        'f(aaaaaaaa'
        """
        if not always and not self.wasteful(sql):
            for mark, text in self._held:
                sql = sql.replace(mark, text)
            return sql
        held = [(mark, text) for mark, text in self._held if mark in sql]
        if not held:
            return sql
        name = fresh(sql, *(text for _, text in held), stem="v")
        if len(held) == 1:
            ((mark, text),) = held
            return binder.one(text, name, sql.replace(mark, name))
        for at, (mark, _) in enumerate(held):
            sql = sql.replace(mark, binder.part(name, f"a{at}"))
        return binder.several([(f"a{at}", text) for at, (_, text) in enumerate(held)], name, sql)


class Weights(dict[str, int]):
    """How long the expressions are that the columns of a query are computed by, all the way down.

    An optimiser that moves a condition below a projection puts the expression in the place of the column, everywhere.
    """

    def note(self, key: str, node: Node, sql: str) -> None:
        """A column is ``node``, written ``sql``."""
        self[key] = len(sql) + sum(self.of(n) for n in walk(node))

    def pass_on(self, below: Sequence[Attribute], above: Sequence[Attribute]) -> None:
        """The columns of a side of a set operation go under other keys."""
        for a, b in zip(below, above, strict=True):
            self[b.key] = max(self.get(b.key, 0), self.get(a.key, 0))

    def of(self, node: Node) -> int:
        """What a column stands for; nothing for other nodes."""
        return self.get(node.path[0], 0) if isinstance(node, Column) else 0


def is_plain(node: Node) -> bool:
    """Does it stand for itself in a form: a constant, a column, a lambda or its parameter?"""
    return isinstance(node, Literal | Column) or (isinstance(node, Call) and node.op in ("lambda", "variable"))


def let(operands: Sequence[str], body: Callable[..., str]) -> str:
    """DuckDB's SQL of a body over pieces of SQL, each of them written once where it is long.

    >>> let(["x"], lambda x: f"({x} + {x})")
    '(x + x)'
    >>> let(["x" * 61], lambda x: f"({x} + 1)").removeprefix("list_transform([{'a0': " + "x" * 61)
    "}], lambda w0_: (struct_extract(w0_, 'a0') + 1))[1]"
    """
    long = [i for i, text in enumerate(operands) if len(text) > _SHORT]
    if not long:
        return body(*operands)
    name = fresh(*operands, stem="w")
    held = ", ".join(f"'a{i}': {operands[i]}" for i in long)
    used = [f"struct_extract({name}, 'a{i}')" if i in long else text for i, text in enumerate(operands)]
    return f"list_transform([{{{held}}}], lambda {name}: {body(*used)})[1]"


# --- in the tree


def shared(value: Node, body: Callable[[Node], Node]) -> Node:
    """``body`` of a value that it names more than once; only a small value is copied.

    >>> import pyarrow as pa
    >>> a = Column(None, ("a",), pa.int32())
    >>> shared(a, lambda v: call("+", (v, v), v.dtype)).op
    '+'
    >>> long = call("abs", (call("abs", (call("abs", (call("+", (a, call("+", (a, a), a.dtype)), a.dtype),), a.dtype),),
    ...     a.dtype),), a.dtype)
    >>> shared(long, lambda v: call("+", (v, v), v.dtype)).op
    'let'
    """
    if has_void(value.dtype) or is_small(value):
        return body(value)
    # An operand of the body may be a `let` too, and has its own variable; none of them sees another one's.
    name = variable(f"let {_height(value)}#", value.dtype)
    made = body(name)
    return call(LET, (value, function_of((name,), made)), made.dtype)


def is_small(node: Node) -> bool:
    """May it be copied in the tree?"""
    return len(list(itertools.islice(walk(node), _SMALL + 1))) <= _SMALL


def _height(node: Node) -> int:
    return 1 + max(map(_height, parts_of(node)), default=0)


def unfolded(node: Node) -> Node:
    """The tree with each value of a ``let`` in its places, as one object: for those who look at each object once.

    What stands inside the lambdas of users is left as it is. A node that stands in many places is walked once: the
    tree of paths to it may be exponentially larger than the objects are many.
    """
    return _unfolded(node, {}, {})


def _unfolded(node: Node, names: Mapping[str, Node], done: dict[int, Node]) -> Node:
    """The tree of a node where these names stand for these values; ``done``, by identity, is of the same names."""
    if not isinstance(node, Call) or not node.args or node.op == "lambda":
        return node
    if node.op == "variable":
        return names.get(_name_of(node), node)
    if (found := done.get(id(node))) is not None:
        return found
    if node.op == LET:
        values, variables, body = parts_of_let(node)
        bound = zip(map(_name_of, variables), (_unfolded(v, names, done) for v in values), strict=True)
        made = _unfolded(body, {**names, **dict(bound)}, {})
    else:
        args = tuple(_unfolded(a, names, done) for a in node.args)
        same = all(a is b for a, b in zip(args, node.args, strict=True))
        made = node if same else Call(node.op, args, node.dtype, node.fallible)
    done[id(node)] = made
    return made


def parts_of_let(node: Call) -> tuple[tuple[Node, ...], tuple[Call, ...], Node]:
    """The values of a ``let``, its variables and its body."""
    *values, function = node.args
    assert isinstance(function, Call)
    *names, body = function.args
    return tuple(values), tuple(n for n in names if isinstance(n, Call)), body


def _name_of(node: Call) -> str:
    (name,) = node.args
    assert isinstance(name, Literal)
    return str(name.value)


def has_many_rows(node: Node) -> bool:
    """Is there a subquery, an aggregate or a window in it?"""
    return any(isinstance(n, SubqueryCall | AggregateCall | WindowCall) for n in walk(node))


def hoisted(node: Call) -> Call:
    """The call with the subqueries inside it bound around it: an engine takes none inside a lambda.

    They are computed for all rows wherever they stand, so nothing is evaluated that was not before.
    """
    outermost: list[Node] = []

    def outside(part: Node) -> Node | None:
        if not isinstance(part, SubqueryCall | AggregateCall | WindowCall):
            return None
        if part not in outermost:
            outermost.append(part)
        return variable(f"{_HOISTED} {outermost.index(part)}#", part.dtype)

    body = rewrite(node, outside)
    names = tuple(variable(f"{_HOISTED} {at}#", part.dtype) for at, part in enumerate(outermost))
    return call(LET, (*outermost, function_of(names, body)), body.dtype)
