"""The border to the native library: what it raises becomes an error of ours, and a panic ends a call, not the process.

The library raises ValueError for what it refuses, with a message for its own users, and turns a panic in its code into
an exception that is no `Exception`. `guarded` lets through what is ours, and gives everything else a type and a code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from headwater.base.errors import HeadwaterError, SearchQueryError

__all__ = ["guarded"]


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
