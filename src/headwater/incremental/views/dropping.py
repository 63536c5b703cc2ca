"""Dropping: what others read is not deleted under them.

A table or a view that views read is dropped only with them, and the views go first, those before that read others. So a
process that ends on the way leaves views with all their sources.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.base.errors import HeadwaterError, InputError
from headwater.incremental.views.dependencies import dependants
from headwater.incremental.views.surroundings import Surroundings
from headwater.incremental.views.upstream import Looked

__all__ = ["drop_readers", "readers"]


def readers(name: str, around: Surroundings) -> list[str]:
    """The views that read a table or view, directly or through others; each before those that it reads."""
    looked, sources = Looked(around), {}
    for view in around.views():
        try:
            sources[view] = looked.sources(view) or ()
        except HeadwaterError:  # a damaged view reads nothing any more
            continue
    return dependants([name], sources)


def drop_readers(
    name: str, around: Surroundings, drop: Callable[[str], None], *, cascade: bool, verb: str
) -> list[str]:
    """Drop the views that read ``name``, in order, and give their names; without ``cascade`` they are an error."""
    found = readers(name, around)
    if found and not cascade:
        raise InputError.is_read(name, found[::-1], verb)
    for view in found:
        drop(view)
    return found
