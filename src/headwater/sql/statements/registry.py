"""Which statement is this? Readers by the words a statement begins with; the longest match decides.

A reader is a function from a `Cursor`, which stands behind the leading words, to a `Statement`. Rooms add their own:

    @reader("CREATE", "MATERIALIZED", "VIEW", form="CREATE MATERIALIZED VIEW name AS query")
    def read_create_view(cursor: Cursor) -> CreateView: ...
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from headwater.base.errors import ExpressionError
from headwater.sql.fragment import Parameters
from headwater.sql.statements.cursor import Cursor, check_all_used, check_kind
from headwater.sql.statements.elsewhere import elsewhere
from headwater.sql.statements.statement import Statement
from headwater.sql.tokens import split, tokenize

__all__ = ["leads", "read", "read_script", "reader"]

Reader = Callable[[Cursor], Statement]
R = TypeVar("R", bound=Reader)


@dataclass(frozen=True, slots=True)
class _Entry:
    read: Reader
    form: str


_READERS: dict[tuple[str, ...], _Entry] = {}


def reader(*words: str, form: str) -> Callable[[R], R]:
    """Register a reader for statements that begin with ``words``; ``form`` shows in hints how they are written."""

    def register(read: R) -> R:
        assert words not in _READERS, f"{' '.join(words)} has two readers"
        _READERS[words] = _Entry(read, form)
        return read

    return register


def leads() -> list[str]:
    """The beginnings of all statements that are known."""
    return sorted(" ".join(words) for words in _READERS)


def read(text: str, parameters: Parameters | None = None, *, offset: int = 0) -> Statement:
    """Read one statement.

    >>> read("DELETE FROM orders WHERE amount > :most", {"most": 100}).table
    'orders'
    """
    parts = split(text)
    if not parts:
        raise ExpressionError.statement(text, "there is none", None, "write a statement, such as SELECT 1")
    if len(parts) > 1:
        hint = "run the statements one at a time, or as a script"
        raise ExpressionError.statement(text, "a second statement begins here", parts[1][1], hint)
    own, start = parts[0]
    cursor = Cursor(own, parameters)
    entry, words = _find(cursor)
    cursor.form = entry.form
    cursor.at = len(words)
    made = entry.read(cursor)
    cursor.end()
    return replace(made, text=own, offset=offset + start, parameters={} if parameters is None else parameters)


def read_script(script: str, parameters: Parameters | None = None) -> list[Statement]:
    """Read the statements of a script, which are separated by ``;``.

    Named parameters may be used by any of the statements, and each gets those that it names.

    >>> [type(s).__name__ for s in read_script("DELETE FROM t; OPTIMIZE t;")]
    ['Delete', 'Optimize']
    """
    given: Parameters = {} if parameters is None else parameters
    check_kind(given)
    found: list[Statement] = []
    number = 0
    for text, offset in split(script):
        tokens = list(tokenize(text))
        if isinstance(given, Mapping):
            own: Parameters = {k: given[k] for k in (t.text[1:] for t in tokens if t.kind == "parameter") if k in given}
        else:
            count = sum(t.kind == "question" for t in tokens)
            own, number = list(given[number : number + count]), number + count
        found.append(read(text, own, offset=offset))
    check_all_used(script, given, list(tokenize(script)))
    return found


def _find(cursor: Cursor) -> tuple[_Entry, tuple[str, ...]]:
    if cursor.sees("("):
        return _READERS["SELECT",], ()
    matching = [words for words in _READERS if cursor.sees(*words)]
    if matching:
        longest = max(matching, key=len)
        return _READERS[longest], longest
    elsewhere(cursor)
    # As many words as are right; the next one is the place of the error.
    agreed = max((_agreement(cursor, words) for words in _READERS), default=0)
    nearest = [words for words in _READERS if _agreement(cursor, words) == agreed]
    cursor.at = agreed
    written = cursor.token()
    word = written.word if written is not None else ""
    known = sorted({words[agreed] for words in nearest if len(words) > agreed})
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.7)
    began = " ".join(t.word for t in cursor.tokens[:agreed])
    if close:
        fitting = [words for words in nearest if words[agreed : agreed + 1] == (close[0],)]
        shortest: tuple[str, ...] = min(fitting, key=len)
        hint = f"did you mean {' '.join(shortest)}?"
    else:
        hint = f"{began + ' is followed by' if began else 'statements begin with'} {', '.join(known)}"
    shown = written.text if written is not None else ""
    why = f"`{f'{began} {shown}'.strip()}` begins no statement that is known here"
    raise cursor.failure(why if word else f"{began} is not a whole statement", hint)


def _agreement(cursor: Cursor, words: tuple[str, ...]) -> int:
    return next((i for i in range(len(words), 0, -1) if cursor.sees(*words[:i])), 0)
