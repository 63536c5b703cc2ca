"""A server cannot be reached, or does not answer as one should."""

from __future__ import annotations

from typing import Self

from headwater.base.errors.root import HeadwaterError

__all__ = ["ServerError"]


class ServerError(HeadwaterError, OSError):
    """A server cannot be reached, does not answer in time, or fails."""

    @classmethod
    def unreachable(cls, url: str, why: str) -> Self:
        return cls(
            "E1764", f"the server cannot be reached: {why}", where=url, hint="check the address, and that it runs"
        )

    @classmethod
    def lost(cls, url: str, why: str) -> Self:
        return cls(
            "E1765",
            f"the connection to the server was lost: {why}",
            where=url,
            hint="try again; a write may have been made, or not",
        )

    @classmethod
    def timed_out(cls, url: str, timeout_s: float) -> Self:
        return cls(
            "E1766",
            f"there was no answer within {timeout_s:g} s",
            where=url,
            hint="give it longer: Client(…, timeout=seconds); a write may have been made, or not",
        )

    @classmethod
    def bad_response(cls, url: str, why: str) -> Self:
        return cls("E1767", f"the answer is not what a server sends: {why}", where=url, hint="check the address")

    @classmethod
    def failed(cls, url: str, status: int, why: str) -> Self:
        return cls("E1768", f"the server answered {status}: {why}", where=url, hint="its log says more")

    @classmethod
    def busy(cls, url: str, connections: int, timeout_s: float) -> Self:
        return cls(
            "E1769",
            f"all {connections} connections were in use for {timeout_s:g} s",
            where=url,
            hint="allow more: Client(…, pool=connections), or give it longer: timeout=seconds",
        )

    def __str__(self) -> str:  # OSError's own __str__ would win otherwise
        return HeadwaterError.__str__(self)
