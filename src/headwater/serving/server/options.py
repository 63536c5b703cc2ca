"""What a server is told: where it listens, who may ask, and how much.

Plain frozen data, made from the configuration file or from the command line before any process is forked, and read by
all of them. `ServerOptions.check` refuses what would be unsafe: a server that other machines can reach needs tokens.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

from headwater.base.errors import AccessError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Action", "Limits", "Scope", "ServerOptions", "Tls", "Token", "is_loopback"]

Action = Literal["read", "write", "admin"]

_HASH = re.compile(r"sha256:([0-9a-fA-F]{64})")
_SCOPE = re.compile(r"(read|write|admin)(?::([A-Za-z_][A-Za-z0-9_.]*\*?|\*))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one request, and all of them together, may ask of one worker.

    Parameters
    ----------
    max_keys : int
        keys, or rows, in one request
    max_body_bytes : int
        bytes of a request's body, as it is sent and as it is unpacked
    max_header_bytes : int
        bytes of a request's first line and headers
    max_concurrency : int
        connections, and requests under way, at the same time
    request_timeout_s : float
        how long a request may take to arrive whole
    max_wait_s : float
        how long a request may wait for a frontier
    """

    max_keys: int = 100_000
    max_body_bytes: int = 64 << 20
    max_header_bytes: int = 32 << 10
    max_concurrency: int = 1024
    request_timeout_s: float = 30.0
    max_wait_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Scope:
    """One thing that a token allows: an action, on all tables, on one, or on those that begin with a prefix.

    >>> Scope.parse("read:team_*", "ci").allows("read", "team_spend")
    True
    >>> Scope.parse("read", "ci").allows("write", "spend")
    False
    """

    action: Action
    table: str | None = None

    @classmethod
    def parse(cls, text: str, token: str) -> Scope:
        """Read what stands in the configuration; ``token`` is whose scope it is, for errors."""
        found = _SCOPE.fullmatch(text)
        if found is None:
            raise AccessError.bad_scope(text, token)
        return cls(cast("Action", found[1]), None if found[2] in (None, "*") else found[2])

    def allows(self, action: Action, table: str | None) -> bool:
        """Whether this scope is enough; without a table, the action concerns all of them."""
        if action != self.action:
            return False
        if self.table is None or table is None:
            return self.table is None
        return table.startswith(self.table[:-1]) if self.table.endswith("*") else table == self.table


@dataclass(frozen=True, slots=True)
class Token:
    """Somebody who may ask: a name for people, the SHA-256 digest of the token, and what it allows."""

    name: str
    digest: bytes = field(repr=False)
    scopes: tuple[Scope, ...]

    @classmethod
    def parse(cls, name: str, hashed: str, scopes: Sequence[str]) -> Token:
        """Read what stands in the configuration: ``sha256:`` and 64 hexadecimal digits, and scopes."""
        found = _HASH.fullmatch(hashed)
        if found is None:
            raise AccessError.bad_hash(name)
        return cls(name, bytes.fromhex(found[1]), tuple(Scope.parse(scope, name) for scope in scopes))


@dataclass(frozen=True, slots=True)
class Tls:
    """The certificate and the key that a server proves its identity by; ``ca`` asks clients for certificates, too."""

    certfile: str
    keyfile: str | None = None
    password: str | None = field(default=None, repr=False)
    ca: str | None = None

    def check(self) -> None:
        """Raise if a worker could not speak TLS by it."""
        import ssl

        for path in (self.certfile, self.keyfile, self.ca):
            if path is not None and not os.access(path, os.R_OK):
                raise AccessError.bad_tls(path, "the file is not there, or may not be read")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # Without a password openssl would ask for one at the terminal.
            context.load_cert_chain(self.certfile, self.keyfile, self.password or "")
        except (ssl.SSLError, ValueError) as error:
            raise AccessError.bad_tls(f"{self.certfile}, {self.keyfile or self.certfile}", str(error)) from None
        if self.ca is not None:
            try:
                context.load_verify_locations(self.ca)
            except ssl.SSLError as error:
                raise AccessError.bad_tls(self.ca, str(error)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Everything that is the same for all workers of a server.

    Parameters
    ----------
    host, port : str, int
        where it listens; port 0 takes any that is free
    flight_port : int, optional
        where another process answers Arrow Flight on the same host; without it there is none
    workers : int
        how many processes answer
    tokens : tuple of Token
        who may ask; without tokens everybody may, and then it must listen on loopback
    tls : Tls, optional
        encrypt
    limits : Limits
    fast_path : bool
        answer fetches one layer below ASGI
    keep_alive_s : float
        close a connection on which nothing is asked for so long
    drain_s : float
        how long requests under way have at the end
    poll_local_s, poll_remote_s : float
        how often a worker looks for newer versions, on local disks and on object storage
    access_log : bool
        write a line for each request
    """

    host: str = "127.0.0.1"
    port: int = 8080
    flight_port: int | None = None
    workers: int = 1
    tokens: tuple[Token, ...] = ()
    tls: Tls | None = None
    limits: Limits = Limits()
    fast_path: bool = True
    keep_alive_s: float = 75.0
    drain_s: float = 10.0
    poll_local_s: float = 0.01
    poll_remote_s: float = 1.0
    access_log: bool = False

    def check(self) -> None:
        """Raise for what cannot work or would be unsafe."""
        if not 1 <= self.workers <= 256:
            raise InputError.bad_argument("workers", self.workers, "a number from 1 to 256")
        if self.flight_port is not None and not 0 < self.flight_port < 1 << 16:
            raise InputError.bad_argument("flight_port", self.flight_port, "a number from 1 to 65535")
        if not 0 <= self.port < 1 << 16:
            raise InputError.bad_argument("port", self.port, "a number from 0 to 65535")
        if not self.tokens and not is_loopback(self.host):
            raise AccessError.open_server(self.host)
        if self.tls is not None:
            self.tls.check()

    @property
    def scheme(self) -> str:
        return "http" if self.tls is None else "https"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
