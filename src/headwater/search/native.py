"""The border to the native library: what it raises becomes an error of ours, and a panic ends a call, not the process.

The library raises ValueError for what it refuses, with a message for its own users, and turns a panic in its code into
an exception that is no `Exception`. `guarded` lets through what is ours, and gives everything else a type and a code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from headwater.base.errors import HeadwaterError, SearchQueryError

__all__ = ["MOST_FUZZY", "fuzzy_size", "guarded", "one_of"]

_FEW_TERMS = 30
MOST_FUZZY = 100_000
"""The size of all fuzzy words of a query: about 300 words of 8 letters, or one of 300 that are all different."""


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Give errors of the library a type: ``what`` is what was done, for the message."""
    try:
        yield
    except HeadwaterError:
        raise
    except ValueError as e:
        raise SearchQueryError.refused(what, _first_line(e)) from e
    except BaseException as e:
        if type(e).__name__ != "PanicException":
            raise
        raise SearchQueryError.broken(what, _first_line(e)) from e


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0][:200]


def one_of(schema: Any, name: str, terms: Collection[str]) -> Any:
    """The library's query for rows with one of some terms, each with the same score.

    Its own sets of terms walk the dictionary and make a bitmap of all rows, which is much for a few terms.
    """
    import tantivy

    make = tantivy.Query
    if not terms:
        return make.empty_query()
    if len(terms) > _FEW_TERMS:
        return make.term_set_query(schema, name, sorted(terms))
    each = [make.term_query(schema, name, term, "basic") for term in sorted(terms)]
    both = each[0] if len(each) == 1 else make.boolean_query([(tantivy.Occur.Should, one) for one in each])
    return make.const_score_query(both, 1.0)


def fuzzy_size(word: str) -> int:
    """A measure of the library's automaton for words that are near to one: up to 0.8 KB for each.

    It has a row for each letter, and in it a column for each different one.
    """
    return len(word) * (30 + len(set(word)))
