"""Bucket prefixes of S3, or of a server that speaks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.base.storage.address import Address
from headwater.base.storage.clients import Connection
from headwater.base.storage.object_storage import ObjectStorage
from headwater.base.storage.options import S3_OPTIONS, is_true

__all__ = ["S3Storage"]


class S3Storage(ObjectStorage):
    """A bucket prefix of S3 or of a server that speaks it, with conditional puts (``If-None-Match``)."""

    service = "s3"
    option_names = S3_OPTIONS

    @classmethod
    def connection(cls, address: Address, options: Mapping[str, str]) -> Connection:
        del address  # it says nothing but the bucket
        config, _ = S3_OPTIONS.read(options)
        allow_http = config.pop("allow_http", None)
        plain = is_true(allow_http) if allow_http is not None else config.get("endpoint", "").startswith("http://")
        config.setdefault("region", "us-east-1")
        secrets = tuple(config[name] for name in S3_OPTIONS.secret if name in config)
        return Connection(config, {"allow_http": True} if plain else {}, secrets)

    @classmethod
    def make_store(cls, bucket: str, **arguments: Any) -> Any:
        from obstore.store import S3Store

        return S3Store(bucket, **arguments)
