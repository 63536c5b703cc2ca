"""A request to a server is malformed, is not allowed, or is more than the server takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.base.errors.input import InputError
from headwater.base.errors.root import HeadwaterError
from headwater.base.errors.wording import candidates_hint, list_some, shortened

__all__ = ["AccessError", "LimitError", "RequestError"]


class RequestError(InputError):
    """A request to a server cannot be understood."""

    @classmethod
    def bad_body(cls, media: str, why: str) -> Self:
        return cls("E1740", f"the body is not {media} as expected: {shortened(why)}", hint="see /docs for its form")

    @classmethod
    def media_type(cls, given: str, known: Sequence[str]) -> Self:
        what = f"a body of type `{shortened(given, 80)}` is not read here" if given else "the body has no Content-Type"
        return cls("E1741", what, hint=f"send one of {', '.join(known)}")

    @classmethod
    def not_acceptable(cls, given: str, known: Sequence[str]) -> Self:
        return cls(
            "E1742",
            f"nothing that is sent here fits Accept: {shortened(given, 80)}",
            hint=f"accept one of {', '.join(known)}",
        )

    @classmethod
    def parameter(cls, name: str, value: str, expected: str) -> Self:
        return cls("E1743", f"the parameter `{name}` is {shortened(value, 80)!r}", hint=f"expected {expected}")

    @classmethod
    def unknown_parameter(cls, name: str, known: Sequence[str]) -> Self:
        shown = shortened(name, 80)
        return cls("E1744", f"no parameter `{shown}`", hint=candidates_hint(shown, known, "parameters"))

    @classmethod
    def no_route(cls, path: str) -> Self:
        return cls("E1745", f"nothing is served at {shortened(path, 200)}", hint="/openapi.json lists what there is")

    @classmethod
    def method(cls, method: str, path: str, allowed: Sequence[str]) -> Self:
        return cls(
            "E1746",
            f"{shortened(method, 20)} is not served at {shortened(path, 200)}",
            hint=f"use {', '.join(allowed)}",
        )

    @classmethod
    def malformed(cls, why: str) -> Self:
        return cls("E1747", f"the request is not valid HTTP: {shortened(why)}", hint="check the client or the proxy")

    @classmethod
    def read_only(cls, table: str, why: str) -> Self:
        return cls(
            "E1748",
            f"rows of the table `{table}` cannot be written here: {why}",
            hint="write to its source; only tables that were created by this API take rows",
        )

    @classmethod
    def not_ours(cls, table: str, why: str, hint: str) -> Self:
        return cls("E1752", f"the table `{table}` can neither be created nor dropped here: {why}", hint=hint)

    @classmethod
    def unrelated_frontier(cls, wanted: str, table: str, known: Sequence[str]) -> Self:
        what = list_some(known) if known else "no table"
        return cls(
            "E1749",
            f"`{table}` never reaches {shortened(wanted, 120)}",
            hint=f"it follows {what}; name those, or the table itself",
        )

    @classmethod
    def keys_missing(cls, key: Sequence[str]) -> Self:
        return cls("E1750", "the body names no keys", hint=f"give `keys`: values of {', '.join(key)}")

    @classmethod
    def values(cls, column: str, kind: str, why: str) -> Self:
        return cls(
            "E1751",
            f"the values of `{shortened(column, 80)}` do not fit its type {kind}: {shortened(why)}",
            hint=f"give values of type {kind}",
        )


class AccessError(HeadwaterError):
    """A token is missing or wrong, or does not allow what is asked."""

    @classmethod
    def no_token(cls) -> Self:
        return cls("E8101", "a token is needed", hint="send the header Authorization: Bearer TOKEN")

    @classmethod
    def bad_token(cls) -> Self:
        return cls("E8102", "the token is not known here", hint="check it, or ask for one")

    @classmethod
    def out_of_scope(cls, action: str, table: str | None) -> Self:
        what = f"{action} `{table}`" if table else action
        return cls("E8103", f"the token does not allow to {what}", hint="ask for a token with that scope")

    @classmethod
    def foreign_host(cls, host: str) -> Self:
        return cls(
            "E8104",
            f"this server answers on loopback without tokens, and not to the host name `{shortened(host, 80)}`",
            hint="use 127.0.0.1 or localhost, or give the server tokens",
        )

    @classmethod
    def open_server(cls, host: str) -> Self:
        return cls(
            "E8105",
            f"a server on {host} can be reached by other machines, and has no tokens",
            hint="add tokens to the configuration (`headwater serve --hash-token` hashes one), or bind to 127.0.0.1",
        )

    @classmethod
    def bad_hash(cls, token: str) -> Self:
        return cls(
            "E8106",
            f"the hash of the token `{token}` is not valid",
            hint="write sha256: and 64 hexadecimal digits; `headwater serve --hash-token` makes it",
        )

    @classmethod
    def bad_scope(cls, scope: str, token: str) -> Self:
        return cls(
            "E8107",
            f"`{shortened(scope, 80)}` is not a scope",
            where=f"token `{token}`",
            hint="write read, write or admin, alone or with tables: read:spend, read:team_*",
        )

    @classmethod
    def bad_tls(cls, where: str, why: str) -> Self:
        return cls(
            "E8108",
            f"TLS cannot be spoken: {shortened(why)}",
            where=where,
            hint="`tls` needs a certificate and its private key, in PEM, that this user may read",
        )


class LimitError(HeadwaterError):
    """A request is larger, slower or more than the server takes."""

    @classmethod
    def body(cls, limit_bytes: int) -> Self:
        return cls("E8201", f"the body has more than {limit_bytes:,} bytes", hint="send less at once")

    @classmethod
    def keys(cls, given: int, limit: int) -> Self:
        return cls("E8202", f"{given:,} keys are more than the {limit:,} of one request", hint="send fewer at once")

    @classmethod
    def headers(cls, limit_bytes: int) -> Self:
        return cls("E8203", f"the headers have more than {limit_bytes:,} bytes", hint="send fewer or shorter headers")

    @classmethod
    def concurrency(cls, limit: int) -> Self:
        return cls("E8204", f"{limit:,} requests or connections are under way already", hint="try again in a moment")

    @classmethod
    def too_slow(cls, limit_s: float) -> Self:
        return cls("E8205", f"the request was not complete after {limit_s:g} s", hint="send it in one piece")

    @classmethod
    def behind(cls, wanted: str, have: str, waited_s: float) -> Self:
        return cls(
            "E8206",
            f"{wanted} was not reached within {waited_s:g} s; the newest is {have or 'nothing'}",
            hint="refresh the table, or wait longer with `wait`",
        )

    @classmethod
    def no_common_frontier(cls, tables: Sequence[str]) -> Self:
        return cls(
            "E8207",
            f"there is no frontier that all of {list_some(tables)} have reached",
            hint="refresh the tables, wait with `wait`, or ask for each alone",
        )

    @classmethod
    def not_loaded(cls, table: str) -> Self:
        return cls(
            "E8208", f"`{table}` is not loaded yet", hint="refresh it, or try again; /readyz says what is missing"
        )

    @classmethod
    def unpacked(cls, limit_bytes: int) -> Self:
        return cls("E8209", f"the body holds more than {limit_bytes:,} bytes when unpacked", hint="send less at once")
