"""Where a server is, and what every request to it says of itself."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from headwater.base.errors import InputError

__all__ = ["Address"]

_TOKEN = re.compile(r"[\x21-\x7e]+")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """A server: scheme, host, port, the path below which its API lies, and the token that it is shown.

    >>> Address.parse("http://127.0.0.1:8080/").url
    'http://127.0.0.1:8080'
    """

    scheme: str
    host: str
    port: int
    prefix: str = ""
    token: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str, token: str | None = None, tls: ssl.SSLContext | None = None) -> Address:
        """Read a URL; https uses the certificates that this machine trusts, unless a context is given."""
        expected = "the address of a server, such as http://127.0.0.1:8080"
        try:
            parts = urlsplit(url)
            port = parts.port
        except (ValueError, AttributeError, TypeError):
            raise InputError.bad_argument("url", url, expected) from None
        known = parts.scheme in _PORTS and parts.hostname and not parts.query and not parts.fragment
        if not known or parts.username is not None or parts.hostname is None:
            raise InputError.bad_argument("url", url, expected)
        if token is not None and not _TOKEN.fullmatch(token):
            raise InputError.bad_argument("token", "…", "characters that a header can hold, without blanks")
        if parts.scheme == "https" and tls is None:
            tls = ssl.create_default_context()
        tls = tls if parts.scheme == "https" else None
        prefix = quote(parts.path.rstrip("/"), safe="/%")
        return cls(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], prefix, token, tls)

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self._named_host}{self._named_port}{self.prefix}"

    @property
    def headers(self) -> bytes:
        """The lines that all requests have: the host, and the token if there is one."""
        lines = f"host: {self._named_host}{self._named_port}\r\nuser-agent: headwater\r\n"
        if self.token is not None:
            lines += f"authorization: Bearer {self.token}\r\n"
        return lines.encode("ascii")

    @property
    def _named_host(self) -> str:
        if ":" in self.host:
            return f"[{self.host}]"
        return self.host if self.host.isascii() else self.host.encode("idna").decode()

    @property
    def _named_port(self) -> str:
        return "" if self.port == _PORTS[self.scheme] else f":{self.port}"
