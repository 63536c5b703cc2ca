"""From a code to the class of error that has it: for errors that came over the network as their facts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from headwater.base.errors.root import HeadwaterError

__all__ = ["class_of"]

_CODE = re.compile(r"E\d{4}")


def class_of(code: str) -> type[HeadwaterError] | None:
    """The class whose classmethods build errors with this code; None for a code of another version.

    >>> class_of("E1001").__name__, class_of("E0000")
    ('InputError', None)
    """
    return _classes().get(code)


@cache
def _classes() -> dict[str, type[HeadwaterError]]:
    found: dict[str, type[HeadwaterError]] = {}
    for kind in _below(HeadwaterError):
        for member in vars(kind).values():
            if isinstance(member, classmethod):
                constants = member.__func__.__code__.co_consts
                found.update({one: kind for one in constants if isinstance(one, str) and _CODE.fullmatch(one)})
    return found


def _below(kind: type[HeadwaterError]) -> Iterator[type[HeadwaterError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)
