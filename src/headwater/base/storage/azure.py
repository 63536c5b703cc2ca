"""Prefixes of containers in Azure's blob storage, with or without a hierarchical namespace.

The account is in the URL (``abfss://container@account.dfs.core.windows.net/prefix``) or an option; credentials are a
key, a shared access signature, a service principal, a federated token, or the identity of the machine. Those that are
given as options count, whatever else the environment has. Put-if-absent is ``If-None-Match: *``.

A connection string, as the portal shows it, is a shorter way to say the account, its key or signature, and endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.base.errors import InputError, StorageError
from headwater.base.storage.address import Address
from headwater.base.storage.clients import Connection
from headwater.base.storage.object_storage import ObjectStorage
from headwater.base.storage.options import AZURE_OPTIONS, is_true

__all__ = ["AzureStorage"]

# What obstore calls the way to sign requests, by the option that tells of it; the first that is given counts.
_SIGNED_BY = {
    "account_key": "access_key",
    "sas_token": "sas_token",
    "client_secret": "client_secret",
    "bearer_token": "bearer_token",
    "federated_token_file": "workload_identity",
}
_OBSTORE_NAMES = {"sas_token": "sas_key", "bearer_token": "token"}
_IN_STRINGS = {
    "accountname": "account_name",
    "accountkey": "account_key",
    "sharedaccesssignature": "sas_token",
    "blobendpoint": "endpoint",
}


class AzureStorage(ObjectStorage):
    """A prefix of a container of Azure's blob storage, with conditional puts (``If-None-Match``)."""

    service = "azure"
    option_names = AZURE_OPTIONS
    bucket_word = "container"

    @classmethod
    def connection(cls, address: Address, options: Mapping[str, str]) -> Connection:
        config, given = AZURE_OPTIONS.read(options)
        if (text := config.pop("connection_string", None)) is not None:
            parts = _parse_connection_string(text)
            config = {**parts, **config} if "connection_string" not in given else {**config, **parts}
            given |= set(parts) if "connection_string" in given else set()
        secrets = tuple(config[name] for name in AZURE_OPTIONS.secret if name in config)
        if address.account is not None:
            named = config.get("account_name")
            if "account_name" in given and named != address.account:
                raise InputError.bad_argument("account_name", named, f"`{address.account}`, the account of the URL")
            config["account_name"] = address.account
            if address.endpoint is not None:
                config.setdefault("endpoint", address.endpoint)
        emulator = is_true(config.get("use_emulator"))
        if not config.get("account_name") and not emulator:
            raise StorageError.no_credentials("Azure", address.url, AZURE_OPTIONS.credentials)
        signed_by = next((_SIGNED_BY[name] for name in _SIGNED_BY if name in given), None)
        allow_http = config.pop("allow_http", None)
        plain = is_true(allow_http) if allow_http is not None else config.get("endpoint", "").startswith("http://")
        found: dict[str, Any] = {_OBSTORE_NAMES.get(name, name): value for name, value in config.items()}
        if signed_by is not None:
            found["credential_type"] = signed_by
        if "sas_key" in found:
            found["sas_key"] = found["sas_key"].lstrip("?")
        return Connection(found, {"allow_http": True} if plain or emulator else {}, secrets)

    @classmethod
    def make_store(cls, bucket: str, **arguments: Any) -> Any:
        from obstore.store import AzureStore

        return AzureStore(bucket, **arguments)


def _parse_connection_string(text: str) -> dict[str, str]:
    """The options that a connection string stands for.

    >>> _parse_connection_string("DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=YQ==")
    {'account_name': 'acme', 'account_key': 'YQ=='}
    """
    pairs = dict(part.split("=", 1) for part in text.split(";") if "=" in part)
    by_name = {name.strip().lower(): value.strip() for name, value in pairs.items()}
    if is_true(by_name.get("usedevelopmentstorage")):
        return {"use_emulator": "true"}
    found = {meaning: by_name[name] for name, meaning in _IN_STRINGS.items() if name in by_name}
    if "account_name" not in found and "endpoint" not in found:
        raise InputError.bad_argument("connection_string", "…", "AccountName=…;AccountKey=…, as the portal shows it")
    suffix, account = by_name.get("endpointsuffix", "core.windows.net"), found.get("account_name")
    if suffix != "core.windows.net" and "endpoint" not in found:
        found["endpoint"] = f"https://{account}.blob.{suffix}"
    return found
