"""Functions of the user's own, in Python: called in SQL by their name, with declared types.

A *scalar* function takes Python values and is called row by row; a null is None, and it is called with it. A
*vectorised* one takes Arrow arrays and gives one of the same length; each of its values may depend on the values of its
own row only. Either may be called for the rows of a query in any portions and any order, and for a row more than once.

In the typed tree a call is the operator ``user name@fingerprint``. The fingerprint is of the function's source text
(its code, where there is no text; of a lambda what is behind its colon), its types and its declared ``version``: a view
that was computed by another function is another view. What a function reads besides its arguments is not part of it;
say a new ``version`` when that changes.
"""

from __future__ import annotations

import dis
import hashlib
import inspect
import re
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headwater.base.errors import Action, InputError, NotFoundError, SchemaError
from headwater.base.schema import duckdb_type
from headwater.sql.casts import cast
from headwater.sql.functions.catalogue import AGGREGATES, FUNCTIONS
from headwater.sql.nodes import Call, Node, Wrong, call
from headwater.sql.types import name_of, wider
from headwater.sql.udfs import UDFS, Failed, Udf

__all__ = [
    "UserFailed",
    "UserFunction",
    "apply_user",
    "duckdb_name",
    "functions_by_name",
    "is_user",
    "register",
    "registered",
    "source_text",
    "user_function",
    "user_operators",
]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MARK = "user "
# Functions that change the rows of a query, and so are in no catalogue.
_CLAUSES = {"window", "session_window", "window_time"}
_SHOWN = 60
_PREPARING = {"COPY_FREE_VARS", "MAKE_CELL", "RESUME", "RETURN_VALUE"}
_known: dict[str, UserFunction] = {}


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A Python function with its types.

    Parameters
    ----------
    name
        What it is called in SQL, in any case; not the name of a function of Spark's.
    function
        Takes one argument for each of ``arguments``: Python values, or Arrow arrays if ``vectorised``.
    arguments
        The types of its arguments; what a query gives is cast to them where Spark would do so by itself.
    returns
        The type of what it gives.
    vectorised
        Is it called with arrays?
    deterministic
        Does it give the same for the same arguments? Views take no other ones.
    version
        To be changed when the function means something else though its text is the same.

    >>> twice = UserFunction("twice", lambda x: None if x is None else 2 * x, (pa.int64(),), pa.int64())
    >>> twice.over([pa.array([1, None])]).to_pylist()
    [2, None]
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[pa.DataType, ...]
    returns: pa.DataType
    vectorised: bool = False
    deterministic: bool = True
    version: str = ""
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError.bad_argument("name", self.name, "a name of letters, digits and _")
        if self.name.lower() in FUNCTIONS or self.name.lower() in AGGREGATES or self.name.lower() in _CLAUSES:
            raise InputError.bad_argument("name", self.name, "a name that no function of Spark's has")
        if not callable(self.function):
            raise InputError.bad_argument("function", self.function, "a function")
        for dtype in (*self.arguments, self.returns):
            _check_type(dtype)
        parts = [self.name.lower(), source_text(self.function), *map(str, self.arguments), str(self.returns)]
        parts += [str(self.vectorised), self.version]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        object.__setattr__(self, "fingerprint", digest[:16])

    @property
    def op(self) -> str:
        """The operator of its calls in the typed tree."""
        return f"{_MARK}{self.name.lower()}@{self.fingerprint}"

    def over(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Its values for columns of arguments; raises `Failed`, with the number of the row where there is one."""
        rows = len(columns[0]) if columns else 1
        return self._at_once(columns, rows) if self.vectorised else self._by_row(columns)

    def _by_row(self, columns: Sequence[pa.Array]) -> pa.Array:
        out = []
        for row, given in enumerate(zip(*(c.to_pylist() for c in columns), strict=True) if columns else [()]):
            try:
                out.append(self.function(*given))
            except Exception as error:
                raise self._raised(error, given, row) from error
        try:
            return pa.array(out, self.returns)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            for row, value in enumerate(out):
                try:
                    pa.array([value], self.returns)
                except (pa.ArrowException, TypeError, ValueError, OverflowError):
                    what = f"gave {value!r}, which is no {name_of(self.returns)}"
                    raise _failure(self.name, what, row) from None
            raise

    def _at_once(self, columns: Sequence[pa.Array], rows: int) -> pa.Array:
        try:
            found = self.function(*columns)
        except Exception as error:
            if rows > 1:
                self._first_failing(columns, rows)
            raise self._raised(error, [c[0].as_py() for c in columns if len(c)], 0) from error
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        if not isinstance(found, pa.Array):
            raise _failure(self.name, f"gave {type(found).__name__}, not an Arrow array", 0)
        if len(found) != rows:
            raise _failure(self.name, f"gave {len(found)} values for {rows} rows", 0)
        if found.type != self.returns:
            what = f"gave values of type {found.type}, and not {self.returns} as it was declared to"
            raise _failure(self.name, what, 0)
        return found

    def _first_failing(self, columns: Sequence[pa.Array], rows: int) -> None:
        """Find the row by halves: each value depends on its own row only."""
        low, high = 0, rows
        while high - low > 1:
            middle = (low + high) // 2
            try:
                self.function(*(c.slice(low, middle - low) for c in columns))
                low = middle
            except Exception:  # noqa: BLE001
                high = middle
        try:
            self.function(*(c.slice(low, 1) for c in columns))
        except Exception as error:
            raise self._raised(error, [c[low].as_py() for c in columns], low) from error

    def _raised(self, error: Exception, given: Sequence[object], row: int) -> UserFailed:
        shown = ", ".join(map(_short, given))
        return _failure(self.name, f"raised {type(error).__name__} for ({shown}): {error}", row)


class UserFailed(Failed):
    """What went wrong in a user's function, and in which of the rows it was given."""

    def __init__(self, reason: str, row: int) -> None:
        super().__init__(reason)
        self.row = row


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _failure(name: str, what: str, row: int) -> UserFailed:
    return UserFailed(f"the function {name}() {what}", row)


def _check_type(dtype: pa.DataType) -> None:
    try:
        duckdb_type(dtype)
    except SchemaError:
        raise InputError.bad_argument("arguments", str(dtype), "a type that Delta stores") from None


def source_text(function: Callable[..., Any]) -> str:
    """A function's text; its code, where there is no text."""
    try:
        if getattr(function, "__name__", "") == "<lambda>":
            return _lambda(function.__code__, inspect.findsource(function)[0])
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        return _code(code) if code is not None else f"{function.__module__}.{getattr(function, '__qualname__', '')}"


def _lambda(code: types.CodeType, lines: Sequence[str]) -> str:
    """A lambda alone: the text that Python gives for one is its line, on which there may be another."""
    # Instructions that only begin and end the call lie where no text is.
    ops = [dis.opname[op] for op in code.co_code[::2]]
    places = [p for op, p in zip(ops, code.co_positions(), strict=True) if op not in _PREPARING and None not in p]
    if not places:
        return _code(code)
    first, last = min((p[0], p[2]) for p in places), max((p[1], p[3]) for p in places)
    text = [line.encode() for line in lines[first[0] - 1 : last[0]]]  # type: ignore[operator]
    text[-1] = text[-1][: last[1]]
    text[0] = text[0][first[1] :]
    return f"lambda {', '.join(code.co_varnames)}: {b''.join(text).decode()}"


def _code(code: types.CodeType) -> str:
    inner = [_code(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    return "\0".join([code.co_code.hex(), *code.co_names, *inner])


def functions_by_name(functions: Iterable[UserFunction] | Mapping[str, UserFunction]) -> dict[str, UserFunction]:
    """The functions by their names in small letters; two of one name are refused."""
    found: dict[str, UserFunction] = {}
    for function in functions.values() if isinstance(functions, Mapping) else functions:
        if function.name.lower() in found:
            raise InputError.bad_argument("user_functions", function.name, "one function of each name")
        found[function.name.lower()] = function
    return found


def apply_user(function: UserFunction, args: Sequence[Node]) -> Call:
    """A call, with its arguments cast to the declared types; it may fail,
    so it is computed only where it is asked for.
    """
    if len(args) != len(function.arguments):
        what = f"{function.name}() takes {len(function.arguments)} argument(s), and {len(args)} are given"
        raise Wrong(what, f"give {len(function.arguments)}")
    given = []
    for arg, dtype in zip(args, function.arguments, strict=True):
        if (
            arg.dtype != dtype
            and not pa.types.is_null(arg.dtype)
            and wider(arg.dtype, dtype, promote_text=False) != dtype
        ):
            raise Wrong(f"{function.name}() cannot take {name_of(arg.dtype)} for {name_of(dtype)}", "cast it")
        given.append(cast(arg, dtype))
    register(function)
    return call(function.op, tuple(given), function.returns, fallible=True)


def register(function: UserFunction) -> None:
    """Let this process know the function by its fingerprint, so that what was planned with it can be computed."""
    _known[function.op] = function
    UDFS.setdefault(duckdb_name(function.op), _udf(function))


def user_operators(nodes: Iterable[Node]) -> Iterator[tuple[str, str]]:
    """Name and fingerprint of each function of the user's that is called in these nodes."""
    for node in nodes:
        if isinstance(node, Call) and is_user(node.op):
            name, _, fingerprint = node.op.removeprefix(_MARK).partition("@")
            yield name, fingerprint


def registered(name: str, fingerprint: str) -> UserFunction:
    """The function of that fingerprint, as it was last registered in this process."""
    return user_function(f"{_MARK}{name}@{fingerprint}")


def is_user(op: str) -> bool:
    """Is it the operator of a user's function?

    >>> is_user("user double@0123456789abcdef"), is_user("upper")
    (True, False)
    """
    return op.startswith(_MARK)


def user_function(op: str) -> UserFunction:
    """The function behind an operator, as it was last read in this process."""
    found = _known.get(op)
    if found is None:
        name, _, fingerprint = op.removeprefix(_MARK).partition("@")
        error = NotFoundError.column(f"{name}()", [f.name for f in _known.values()])
        tail = f" first, with the same text and version (fingerprint {fingerprint})"
        error.advice = (Action("register_function", name=name, tail=tail),)
        raise error
    return found


def duckdb_name(op: str) -> str:
    """What the function is called in DuckDB's SQL.

    >>> duckdb_name("user double@0123456789abcdef")
    'hw_user_double_0123456789abcdef'
    """
    name, _, fingerprint = op.removeprefix(_MARK).partition("@")
    return f"hw_user_{name}_{fingerprint}"


class _ArrowUdf(Udf):
    """A user's function as DuckDB calls it: by columns."""

    __slots__ = ()

    def vectorised(self, *columns: Any) -> pa.Array:
        arrays = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
        wanted = self.call.arguments  # type: ignore[attr-defined]
        return self.call.over([a.cast(t) for a, t in zip(arrays, wanted, strict=True)])  # type: ignore[attr-defined]


def _udf(function: UserFunction) -> Udf:
    parameters = tuple(map(duckdb_type, function.arguments))
    return _ArrowUdf(
        duckdb_name(function.op),
        parameters,
        duckdb_type(function.returns),
        function.returns,
        function,  # type: ignore[arg-type]
        strict=False,
    )
