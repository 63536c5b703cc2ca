"""Who may do what: bearer tokens, compared in constant time, and the scopes that they have.

The configuration holds SHA-256 digests only. A token that is sent is hashed and compared with every digest, whichever
matches first, so that the time it takes says nothing of which tokens there are or how near one is. A server without
tokens listens on loopback only; then a web page that makes a browser ask it, by a host name that points to 127.0.0.1,
is refused by that host name.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Mapping, Sequence

from headwater.base.errors import AccessError, RequestError
from headwater.serving.server.options import Action, Token

__all__ = ["Access", "hash_token"]

_PORT = re.compile(rb":[0-9]{1,5}\Z")
_KEPT_HOSTS = 256

Headers = Mapping[bytes, bytes]


def hash_token(token: str) -> str:
    """What the configuration holds of a token.

    >>> hash_token("secret")[:20]
    'sha256:2bb80d537b1da'
    """
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


class Access:
    """Decides what the sender of some headers may do."""

    __slots__ = ("_hosts", "_tokens", "is_open")

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tuple(tokens)
        self.is_open = not tokens
        """Whether there are no tokens, so that everybody on this machine may do everything."""
        self._hosts: set[bytes] = set()

    def require(self, headers: Headers, action: Action, table: str | None) -> None:
        """Raise unless the sender may do that, to that table or, without one, to all of them."""
        if self.is_open:
            self._check_host(headers.get(b"host", b""))
            return
        token = self.token(headers)
        if not any(scope.allows(action, table) for scope in token.scopes):
            raise AccessError.out_of_scope(action, table)

    def visible(self, headers: Headers, action: Action, tables: Sequence[str]) -> list[str]:
        """Those of the tables to which the sender may do that; raises where no token is known at all."""
        if self.is_open:
            self._check_host(headers.get(b"host", b""))
            return list(tables)
        token = self.token(headers)
        return [table for table in tables if any(scope.allows(action, table) for scope in token.scopes)]

    def token(self, headers: Headers) -> Token:
        """The token that was sent."""
        given = headers.get(b"authorization")
        if given is None:
            raise AccessError.no_token()
        scheme, _, secret = given.partition(b" ")
        if scheme.lower() != b"bearer" or not secret:
            raise AccessError.no_token()
        digest = hashlib.sha256(secret.strip()).digest()
        found: Token | None = None
        for token in self._tokens:  # all of them, whichever matches
            if hmac.compare_digest(token.digest, digest):
                found = token
        if found is None:
            raise AccessError.bad_token()
        return found

    def _check_host(self, host: bytes) -> None:
        if host in self._hosts:
            return
        if host and not _names_this_machine(host):
            raise AccessError.foreign_host(host.decode("latin-1"))
        if len(self._hosts) < _KEPT_HOSTS:
            self._hosts.add(host)


def _names_this_machine(host: bytes) -> bool:
    """Whether a Host header holds an address or ``localhost``, which no foreign name server can point anywhere.

    >>> [_names_this_machine(host) for host in (b"127.0.0.1:80", b"[::1]:80", b"localhost", b"evil.example:80")]
    [True, True, True, False]
    """
    try:
        bare = _PORT.sub(b"", host).decode("ascii").strip()
    except UnicodeDecodeError:
        raise RequestError.malformed("the Host header is not ASCII") from None
    if bare.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(bare[1:-1] if bare.startswith("[") else bare)
    except ValueError:
        return False
    return True
