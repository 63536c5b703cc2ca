"""Removal: what others read is not deleted under them.

A table or an artefact that others read is dropped only with them, and the readers go first, those before that nobody
reads. So a process that ends on the way leaves artefacts with all their sources.
"""

from __future__ import annotations

from headwater.base.errors import HeadwaterError, InputError
from headwater.base.kinds import ARTEFACT, words_of
from headwater.derived import kinds
from headwater.derived.dependencies import dependants
from headwater.derived.environment import Environment
from headwater.derived.lookup import Lookup

__all__ = ["drop_readers", "readers"]


def readers(name: str, environment: Environment) -> list[str]:
    """The artefacts that read a table or artefact, directly or through others; each before those that it reads."""
    lookup, sources = Lookup(environment), {}
    for one in environment.artefacts():
        try:
            sources[one] = lookup.reads(one) or ()
        except HeadwaterError:  # a damaged one reads nothing any more
            continue
    return dependants([name], sources)


def drop_readers(name: str, environment: Environment, *, cascade: bool, verb: str) -> list[str]:
    """Drop the artefacts that read ``name``, in order, and give their names; without ``cascade`` they are an error."""
    found = readers(name, environment)
    if not found:
        return found
    of = environment.artefacts()
    if not cascade:
        several = {of[one] for one in found}
        raise InputError.is_read(name, found[::-1], verb, words_of(several.pop()) if len(several) == 1 else ARTEFACT)
    for one in found:
        kinds.kind(of[one]).open(one, environment).delete()
    return found
