"""Which status an error has, and how it is written.

An error is JSON with the same four facts everywhere: ``{"code", "message", "where", "hint"}``. What an error says about
places on this machine stays here: ``where`` is left out where it is a path or an address, since callers of the API
have no business with either.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import orjson

from headwater.base.errors import (
    AccessError,
    ConflictError,
    ConstraintError,
    ExpressionError,
    HeadwaterError,
    InputError,
    LimitError,
    NotFoundError,
    SchemaError,
    UnsupportedError,
)
from headwater.base.errors.wording import shortened
from headwater.serving.server.reply import JSON, Reply

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["refuse", "refuse_unexpected", "status_of"]

_log = logging.getLogger("headwater.serve")

# By code, where errors of one class have several statuses.
_BY_CODE = {
    "E1002": 400,  # an unknown column
    "E1741": 415,
    "E1742": 406,
    "E1745": 404,
    "E1746": 405,
    "E1748": 405,
    "E1752": 405,
    "E8101": 401,
    "E8102": 401,
    "E8203": 431,
    "E8204": 503,
    "E8205": 408,
    "E8206": 409,
    "E8207": 409,
    "E8208": 503,
}
_BY_CLASS: tuple[tuple[type[HeadwaterError], int], ...] = (
    (NotFoundError, 404),
    (SchemaError, 400),
    (ExpressionError, 400),
    (InputError, 400),
    (ConstraintError, 400),
    (UnsupportedError, 400),
    (ConflictError, 409),
    (AccessError, 403),
    (LimitError, 413),
)
_TAKEN = frozenset({"E1005", "E1604", "E1614", "E1616"})
"""Something is there already: a conflict to HTTP, and a wrong argument to Python."""

_LONGEST = 400
"""Characters of a message: it may quote what was sent."""
_RETRY_AFTER = (b"retry-after", b"1")
_CHALLENGE = (b"www-authenticate", b'Bearer realm="headwater"')


def status_of(error: HeadwaterError) -> int:
    """The status of an error; 500 for those that no request can be blamed for."""
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    if error.code in _TAKEN:
        return 409
    return next((status for kind, status in _BY_CLASS if isinstance(error, kind)), 500)


def refuse(
    error: HeadwaterError, *, also: Sequence[tuple[bytes, bytes]] = (), close: bool = False, murr: bool = False
) -> Reply:
    """The reply that an error is; ``murr`` adds the field that clients of Murr look at."""
    status = status_of(error)
    if status == 500:
        _log.error("%s", error)
    facts = error.as_dict()
    where = facts["where"]
    if where is not None and ("/" in where or "\\" in where):
        facts["where"] = None
    document = {name: None if text is None else shortened(text, _LONGEST) for name, text in facts.items()}
    if murr:
        document["error"] = document["message"]
    headers = [JSON, *also]
    if status == 401:
        headers.append(_CHALLENGE)
    elif status == 503:
        headers.append(_RETRY_AFTER)
    return Reply(status, tuple(headers), orjson.dumps(document), close=close)


def refuse_unexpected(error: BaseException) -> Reply:
    """The reply to a request that failed by a mistake of ours: logged here, and not told there."""
    _log.error("a request failed", exc_info=error)
    hidden = {"code": "E9001", "message": "the server failed", "where": None, "hint": "its log says more"}
    return Reply(500, (JSON,), orjson.dumps(hidden))
