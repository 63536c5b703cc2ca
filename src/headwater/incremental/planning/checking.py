"""What cannot be kept up to date, said before anything is built.

A view has to give the same rows for the same tables, whenever it is computed. What reads a clock, throws dice, or asks
where a row lies does not; a LIMIT without an order may give any rows; and a table as it was does not change. Each is
refused with the reason, the place in the text and what to write instead.

Constants of the clock are plain dates in a plan by then, so they are looked for in the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from headwater.base.errors import UnsupportedError
from headwater.incremental.circuit.circuit import Circuit
from headwater.incremental.planning.building import build
from headwater.incremental.planning.limit import ordered_below
from headwater.sql.functions.user import is_user, user_function
from headwater.sql.nodes import Call, walk
from headwater.sql.plan import Limit, Plan, Scan
from headwater.sql.tokens import Token, tokenize

__all__ = ["check"]

_CLOCK = "it changes though no table does"
_CLOCK_HINT = "compare with a column, or filter by the clock where the view is read"
_DICE = "it gives another value each time"
_DICE_HINT = "use a function of the row's columns, such as xxhash64(id)"
_PLACE = "it depends on where a row is stored, which changes without the row"
_PLACE_HINT = "store what you need of it in a column"

_FUNCTIONS = {
    **dict.fromkeys(
        (
            "curdate",
            "current_date",
            "current_time",
            "current_timestamp",
            "localtimestamp",
            "now",
            "unix_timestamp",
        ),
        (_CLOCK, _CLOCK_HINT),
    ),
    **dict.fromkeys(("rand", "randn", "random", "randstr", "shuffle", "uniform", "uuid"), (_DICE, _DICE_HINT)),
    **dict.fromkeys(
        (
            "input_file_block_length",
            "input_file_block_start",
            "input_file_name",
            "monotonically_increasing_id",
            "spark_partition_id",
        ),
        (_PLACE, _PLACE_HINT),
    ),
    **dict.fromkeys(
        ("current_catalog", "current_database", "current_schema", "current_user", "session_user", "user"),
        ("it depends on who asks", "write the name, or filter where the view is read"),
    ),
}
_BARE = {"CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "CURRENT_USER", "LOCALTIMESTAMP", "SESSION_USER", "USER"}
_CALLED_WITH_NOTHING = {"unix_timestamp"}


@dataclass(frozen=True, slots=True)
class _Text:
    """The SQL of a view, with its tokens."""

    sql: str
    tokens: tuple[Token, ...]

    def refused(self, what: str, why: str, hint: str, token: Token | None) -> UnsupportedError:
        position = None if token is None else token.start
        return UnsupportedError.not_maintained(self.sql, what, why, hint, position)

    def find(self, *words: str) -> Token | None:
        """The last token that is one of some words: what is outermost stands last."""
        wanted = {w.upper() for w in words}
        return next((t for t in reversed(self.tokens) if t.kind in ("word", "name") and t.word in wanted), None)


def check(plan: Plan, sql: str, *, any_rows: bool = False) -> None:
    """Refuse what a view cannot be kept up to date for.

    Parameters
    ----------
    plan
        as it was read, with or without subqueries
    sql
        its text, for the place in the message
    any_rows
        is a LIMIT without an order allowed? It then keeps the least rows by all columns

    Examples
    --------
    >>> import pyarrow as pa
    >>> from headwater.base.errors import UnsupportedError
    >>> from headwater.sql.query import parse_query
    >>> sql = "SELECT id FROM orders WHERE day = current_date()"
    >>> schema = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    >>> try:
    ...     check(parse_query(sql, lambda *_: schema), sql)
    ... except UnsupportedError as error:
    ...     print(error)
    error[E3007]: current_date() cannot be kept up to date: it changes though no table does
      where: SELECT id FROM orders WHERE day = current_date()
                                               ^
      hint: compare with a column, or filter by the clock where the view is read
    """
    text = _Text(sql, tuple(tokenize(sql)))
    _check_words(text)
    for node in _nodes(plan):
        _check_node(node, text, any_rows=any_rows)
    _check_operators(plan, text, any_rows=any_rows)


def _check_operators(plan: Plan, text: _Text, *, any_rows: bool) -> None:
    """Build the circuit for nothing, and say where it is that an operator is refused."""
    circuit = Circuit("check")
    columns: dict[str, dict[str, pa.Field]] = {}
    for node in plan.walk():
        if isinstance(node, Scan):
            columns.setdefault(node.relation, {}).update({a.name: a.field for a in node.columns})
    inputs = {name: circuit.input(name, pa.schema(list(some.values()))) for name, some in columns.items()}
    try:
        build(circuit, plan, inputs, any_rows=any_rows)
    except UnsupportedError as error:
        token = None if error.subject is None else text.find(error.subject)
        if error.where is None:
            raise error.placed_at(text.sql, None if token is None else token.start) from None
        raise


def _nodes(plan: Plan) -> Iterator[Plan]:
    """All nodes but those below an EXISTS, which only asks whether there are rows."""
    yield plan
    for child in plan.children:
        yield from _nodes(child)
    for subquery in plan.subqueries():
        inner = subquery.plan
        while subquery.kind == "exists" and isinstance(inner, Limit) and not inner.offset and inner.count:
            inner = inner.child
        yield from _nodes(inner)


def _check_words(text: _Text) -> None:
    tokens = text.tokens
    for i, token in enumerate(tokens):
        if token.kind != "word" or (i and tokens[i - 1].text == "."):
            continue
        name = token.text.lower()
        called = i + 1 < len(tokens) and tokens[i + 1].text == "("
        if name not in _FUNCTIONS or not (called or token.word in _BARE):
            continue
        if not called and (i == 0 or tokens[i - 1].word in ("AS", ".") or _is_name(tokens, i)):
            continue
        if name in _CALLED_WITH_NOTHING and not (i + 2 < len(tokens) and tokens[i + 2].text == ")"):
            continue
        raise text.refused(f"{name}()", *_FUNCTIONS[name], token)


def _is_name(tokens: tuple[Token, ...], i: int) -> bool:
    """Is a bare word a qualifier, as in ``user.id``, or an alias, as in ``id user``?"""
    if i + 1 < len(tokens) and tokens[i + 1].text == ".":
        return True
    before = tokens[i - 1]
    return tokens[i].word in ("USER", "SESSION_USER", "CURRENT_USER") or before.text == ")"


def _check_node(node: Plan, text: _Text, *, any_rows: bool) -> None:
    for expression in node.expressions:
        for part in walk(expression):
            if isinstance(part, Call) and part.op in _FUNCTIONS and not (part.args and part.op in _CALLED_WITH_NOTHING):
                raise text.refused(f"{part.op}()", *_FUNCTIONS[part.op], text.find(part.op))
            if isinstance(part, Call) and is_user(part.op) and not user_function(part.op).deterministic:
                name = user_function(part.op).name
                hint = "use a function that is declared deterministic"
                raise text.refused(f"{name}()", _DICE, hint, text.find(name))
    if isinstance(node, Scan):
        _check_scan(node, text)
    if isinstance(node, Limit) and not any_rows and not ordered_below(node):
        what = "OFFSET" if node.count is None else "LIMIT"
        why = "without ORDER BY any rows may be meant"
        raise text.refused(what, why, "add ORDER BY, or leave the LIMIT to those who read the view", text.find(what))


def _check_scan(node: Scan, text: _Text) -> None:
    if node.arguments is not None:
        why = "what a table function gives has no changes to follow"
        raise text.refused(f"{node.name}()", why, "read the table itself", text.find(node.name))
    if node.version is not None or node.timestamp is not None:
        why = "a table as it was does not change, and is read anew each time"
        hint = "read the newest version, or copy the old one to a table of its own"
        token = text.find("VERSION", "TIMESTAMP") or text.find(node.name.rsplit(".", 1)[-1])
        raise text.refused(f"`{node.name}` as it was", why, hint, token)
