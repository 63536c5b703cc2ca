"""Heads of plain fetches that httptools has read before, by their bytes.

A head is the request line and the headers, with the empty line behind them. One is kept only after it came as the
beginning of a whole request, from its first byte to its last, that httptools has read as exactly one message and that
was answered: then it is known where the head ends, how long the body is, and what is asked. See `protocol` for when
that is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.serving.server.fetching import FetchHead

__all__ = ["END_OF_HEAD", "LONGEST_HEAD", "HeadMemory"]

END_OF_HEAD = b"\r\n\r\n"
LONGEST_HEAD = 2048
_HEADS = 1024


class HeadMemory:
    """Heads of plain fetches as httptools read them, by their bytes: what they ask for, and the length of the body."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known: dict[bytes, tuple[FetchHead, int]] = {}

    def remember(self, request: bytes, head: FetchHead, body_bytes: int) -> None:
        """Keep the head of a whole request that was read from its first byte to its last."""
        size = len(request) - body_bytes
        # httptools agrees that the head ends there, since the message was complete with the last byte.
        if size <= LONGEST_HEAD and request.find(END_OF_HEAD) + len(END_OF_HEAD) == size:
            if len(self.known) >= _HEADS:
                self.known.clear()
            self.known[request[:size]] = (head, body_bytes)
