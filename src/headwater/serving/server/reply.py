"""Replies: status, headers and body, before either way has written them.

Both ways write the same bytes: a status line, the server's own headers (date, server), those of the reply in their
order, ``content-length``, the request's id if it had one, and ``connection: close`` where the connection ends. A reply
whose headers are prepared once and sent often brings them as lines already (`lines`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HTML", "JSON", "STATUS_LINES", "TEXT", "Reply", "header_lines", "request_id"]

JSON = (b"content-type", b"application/json")
HTML = (b"content-type", b"text/html; charset=utf-8")
TEXT = (b"content-type", b"text/plain; charset=utf-8")

STATUS_LINES = {one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n".encode() for one in HTTPStatus}

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:+/=-]{1,128}")


@dataclass(slots=True)
class Reply:
    """An answer to one request.

    Parameters
    ----------
    status : int
    headers : tuple of (name, value)
        without those that every reply has
    body : bytes-like
    lines : bytes, optional
        the headers as they are written
    close : bool
        end the connection after it
    keys, misses : int
        how many keys were looked up and how many were not there, for the metrics
    """

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: Any = b""
    lines: bytes | None = None
    close: bool = False
    keys: int = 0
    misses: int = 0


def header_lines(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Headers as they are written.

    >>> header_lines([(b"x-version", b"3")])
    b'x-version: 3\\r\\n'
    """
    return b"".join([part for name, value in headers for part in (name, b": ", value, b"\r\n")])


def request_id(given: bytes | None) -> bytes | None:
    """The id of a request if it can be sent back as it is.

    >>> request_id(b"a1-b2"), request_id(b"a b"), request_id(None)
    (b'a1-b2', None, None)
    """
    return given if given is not None and _REQUEST_ID.fullmatch(given) else None
