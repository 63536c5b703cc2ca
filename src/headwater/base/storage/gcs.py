"""Bucket prefixes of Google Cloud Storage.

Credentials are a key file of a service account, or the file that ``gcloud auth application-default login`` writes, or
the identity of the machine. A key file is read where the lake is opened, and its contents go to Spark's tasks: the
machines that they run on need no copy. ``project`` is the one that pays for the requests (``x-goog-user-project``),
where it is not the bucket's own. Put-if-absent is ``x-goog-if-generation-match: 0``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from headwater.base.errors import InputError, StorageError
from headwater.base.storage.address import Address
from headwater.base.storage.clients import Connection
from headwater.base.storage.object_storage import ObjectStorage
from headwater.base.storage.options import GCS_OPTIONS, is_true

__all__ = ["GoogleStorage"]

_CREDENTIALS = ("service_account_key", "service_account", "application_credentials", "bearer_token", "token")
_ENDPOINT = "https://storage.googleapis.com"


class GoogleStorage(ObjectStorage):
    """A bucket prefix of Google Cloud Storage, with conditional puts (``x-goog-if-generation-match``)."""

    service = "gcs"
    option_names = GCS_OPTIONS

    @classmethod
    def connection(cls, address: Address, options: Mapping[str, str]) -> Connection:
        config, given = GCS_OPTIONS.read(_without_token(options))
        if any(name in given for name in _CREDENTIALS):  # one that is given counts, whatever the environment has
            config = {name: v for name, v in config.items() if name not in _CREDENTIALS or name in given}
        secrets = tuple(config[name] for name in ("bearer_token",) if name in config)
        endpoint, project = config.pop("endpoint", None), config.pop("project", None)
        found: dict[str, Any] = {name: config[name] for name in ("bearer_token",) if name in config}
        if is_true(config.get("skip_signature")):
            found = {"service_account_key": _anonymous(endpoint or _ENDPOINT)}
        elif (key := _service_account(config, address.url)) is not None:
            found["service_account_key"] = key
            secrets += (key, *_lines_of(json.loads(key).get("private_key")))
        elif "application_credentials" in config:
            found["application_credentials"] = config["application_credentials"]
        if endpoint is not None:
            found["base_url"] = endpoint
        allow_http = config.get("allow_http")
        place = endpoint or json.loads(found.get("service_account_key", "{}")).get("gcs_base_url") or ""
        plain = is_true(allow_http) if allow_http is not None else place.startswith("http://")
        http: dict[str, Any] = {"allow_http": True} if plain else {}
        if project is not None:
            http["default_headers"] = {"x-goog-user-project": project}
        return Connection(found, http, secrets)

    @classmethod
    def make_store(cls, bucket: str, **arguments: Any) -> Any:
        from obstore.store import GCSStore

        return GCSStore(bucket, **arguments)

    def _shipped_options(self) -> Mapping[str, str]:
        config, given = GCS_OPTIONS.read(_without_token(self.options))
        if "service_account_key" in given or not {"service_account", "application_credentials"} & given:
            return self.options
        key = _service_account(config, self.url)
        if key is None:
            return self.options
        kept = {n: v for n, v in self.options.items() if GCS_OPTIONS.names.get(n.lower()) not in _CREDENTIALS}
        return {**kept, "GOOGLE_SERVICE_ACCOUNT_KEY": key}


def _without_token(options: Mapping[str, str]) -> dict[str, str]:
    """The options with gcsfs' ``token`` said in other words: it is the path of a file, or ``anon``."""
    found = {}
    for name, value in options.items():
        if GCS_OPTIONS.names.get(name.lower()) != "token":
            found[name] = value
        elif value == "anon":
            found["skip_signature"] = "true"
        elif value.endswith(".json") or os.path.isfile(value):
            found["application_credentials"] = value
        else:
            raise InputError.bad_argument(
                name, "…", "the path of a JSON file, or anon; a bearer token is `bearer_token`"
            )
    return found


def _service_account(config: Mapping[str, str], url: str) -> str | None:
    """The key of a service account, as JSON; None where none is given, or the file holds something else."""
    if (key := config.get("service_account_key")) is not None:
        _parse(key, "service_account_key", url)
        return key
    for name in ("service_account", "application_credentials"):
        if (path := config.get(name)) is None:
            continue
        try:
            with open(os.path.expanduser(path), encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as e:
            why = e.strerror if isinstance(e, OSError) and e.strerror else "it cannot be read"
            raise StorageError.bad_credentials_file(path, why, url) from None
        parsed = _parse(text, path, url)
        if name == "service_account" or parsed.get("type") == "service_account":
            return text
    return None


def _parse(text: str, origin: str, url: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise StorageError.bad_credentials_file(origin, "it is not the JSON of a key", url)
    return parsed


def _lines_of(key: object) -> tuple[str, ...]:
    """The lines of a private key, without those around it that all keys have."""
    return tuple(line for line in str(key or "").split("\n") if line and not line.startswith("-----"))


def _anonymous(endpoint: str) -> str:
    """A key with which obstore signs nothing; its own switch for that still asks for a token when it writes."""
    return json.dumps(
        {"gcs_base_url": endpoint, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
    )
