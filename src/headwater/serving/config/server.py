"""The part of a configuration that is about the server itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, WithJsonSchema, model_validator

from headwater.base.config.fields import Bytes, FolderPath, Model, contradicts, expected
from headwater.base.errors import InputError
from headwater.lake.catalog import Catalog

__all__ = ["LimitsConfig", "ServerConfig", "TlsConfig", "TokenConfig"]

_SCOPES = ("read", "write", "admin")
_HEX = frozenset("0123456789abcdef")


def default_data_dir() -> Path:
    """Where tables lie if nothing else is said: below ``$XDG_DATA_HOME``."""
    home = os.environ.get("XDG_DATA_HOME") or os.path.join("~", ".local", "share")
    return Path(home).expanduser() / "headwater" / "serve"


def _hash(value: Any) -> Any:
    scheme, _, digits = value.partition(":") if isinstance(value, str) else ("", "", "")
    if scheme != "sha256" or len(digits) != 64 or not _HEX.issuperset(digits):
        expected("sha256: and 64 hexadecimal digits in lower case, never the token itself")
    return value


def _scope(value: str) -> str:
    verb, colon, table = value.partition(":")
    if verb not in _SCOPES or (colon and table != "*" and not _is_name(table.removesuffix("*"))):
        expected("read, write or admin, for all tables or for one: `read`, `write:user_features`")
    return value


def _is_name(table: str) -> bool:
    try:
        Catalog.check_name(table)
    except InputError:
        return False
    return True


class TokenConfig(Model):
    """A bearer token that the server takes."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    """Whose it is, for logs and metrics."""
    hash: Annotated[
        str,
        BeforeValidator(_hash),
        Field(repr=False),
        WithJsonSchema({"type": "string", "pattern": "^(sha256:[0-9a-f]{64}|.*\\$\\{.*\\}.*)$"}),
    ]
    """``sha256:`` and the SHA-256 of the token in hexadecimal digits."""
    scopes: list[Annotated[str, AfterValidator(_scope)]] = Field(default_factory=lambda: ["read"], min_length=1)
    """What it may do: read, write or admin, each for all tables or for one (``read:user_features``);
    by default read.
    """


class TlsConfig(Model):
    """TLS, spoken by the server itself."""

    cert: FolderPath
    """The certificate, with its chain, in PEM."""
    key: FolderPath
    """Its private key, in PEM."""
    key_password: SecretStr | None = None
    """The password of the private key; only ever as ``${VARIABLE}``."""
    ca: FolderPath | None = None
    """Certificates of authorities, in PEM: clients have to show a certificate of one of them."""


class LimitsConfig(Model):
    """How much one request, and all of them together, may ask for."""

    max_keys: Annotated[int, Field(ge=1)] = 100_000
    """Keys of one request, over all its tables."""
    max_body_bytes: Bytes = 64 << 20
    """The body of one request."""
    max_header_bytes: Bytes = 32 << 10
    """The headers of one request."""
    max_concurrency: Annotated[int, Field(ge=1)] = 1024
    """Connections of one worker."""
    request_timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30
    """Seconds in which a request has to arrive as a whole."""
    max_wait_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 30
    """Seconds that a request may wait for a frontier (``min_frontier``)."""


class ServerConfig(Model):
    """The server: where it listens, where it keeps its tables, and whom it answers."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """The address to listen on. Any but a loopback address needs tokens."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """The port to listen on; 0 takes a free one."""
    flight_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """The port for Arrow Flight; without it there is none."""
    data_dir: FolderPath = Field(default_factory=default_data_dir)
    """Where the tables of date folders and pushed tables lie; by default ``~/.local/share/headwater/serve``."""
    workers: Annotated[int, Field(ge=1, le=256)] = 1
    """How many processes answer requests. They share one copy of the tables."""
    tokens: list[TokenConfig] = Field(default_factory=list)
    """The bearer tokens that are accepted; without any, nobody has to show one."""
    tls: TlsConfig | None = None
    """The certificate, where the server itself speaks TLS."""
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    """How much may be asked for."""

    @model_validator(mode="after")
    def _tokens_differ(self) -> Self:
        names = [token.name for token in self.tokens]
        for name in names:
            if names.count(name) > 1:
                contradicts(f"two tokens are called `{name}`", "give each a name of its own", "tokens")
        return self
