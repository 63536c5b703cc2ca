"""Storage options: the names that users of obstore, delta-rs and fsspec know, read strictly.

Each service has one table of names. An option is given by the name of an environment variable (``AWS_REGION``), in any
case, or by the short one (``region``); variables of the environment with such names count where the options say
nothing. A name that no service knows is refused with the nearest one, and so is a short name of another service. The
long names of other services pass: a lake on S3 may attach tables on Azure, with one set of options for both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.base.errors import InputError

__all__ = ["AZURE_OPTIONS", "GCS_OPTIONS", "S3_OPTIONS", "OptionNames", "is_true"]


@dataclass(frozen=True)
class OptionNames:
    """The options of one service."""

    service: str
    prefix: str
    """What the names of its environment variables begin with."""
    names: Mapping[str, str]
    """Each name that is understood, in lower case, with what it stands for."""
    shown: tuple[str, ...]
    """The names that a hint lists."""
    credentials: str
    """What to give where credentials are missing."""
    secret: frozenset[str]
    """What must not be shown."""
    not_from_environment: frozenset[str] = frozenset()

    def read(self, options: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
        """The values by what they stand for, with those of the environment beneath, and which were given as options."""
        found: dict[str, str] = {}
        for name, value in os.environ.items():
            known = self.names.get(name.lower()) if name.upper().startswith(self.prefix) else None
            if known and name.lower() not in self.not_from_environment:
                found[known] = value
        given: dict[str, str] = {}
        for name, value in options.items():
            if not isinstance(value, str):
                raise InputError.bad_argument(f"storage_options[{name!r}]", type(value).__name__, "a string")
            known = self.names.get(name.lower())
            if known is not None:
                given[known] = value
            elif not any(name.lower() in each.names and name.upper().startswith(each.prefix) for each in _ALL):
                raise InputError.unknown_option(name, list(self.shown))
        return {**found, **given}, frozenset(given)


def _named(prefix: str, aliases: Mapping[str, str]) -> dict[str, str]:
    """Names from ``{meaning: "alias alias"}``: an alias that begins with ``_`` has the service's prefix before it."""
    names: dict[str, str] = {}
    for meaning, spelled in aliases.items():
        for alias in (meaning, f"_{meaning}", *spelled.split()):
            names[f"{prefix}{alias}" if alias.startswith("_") else alias] = meaning
    return names


S3_OPTIONS = OptionNames(
    service="S3",
    prefix="AWS_",
    names=_named(
        "aws",
        {
            "access_key_id": "",
            "secret_access_key": "",
            "session_token": "",
            "region": "_default_region",
            "endpoint": "_endpoint_url endpoint_url",
            "allow_http": "",
        },
    ),
    shown=(
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"),
        *("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ALLOW_HTTP"),
    ),
    credentials="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    secret=frozenset({"secret_access_key", "session_token"}),
)

AZURE_OPTIONS = OptionNames(
    service="Azure",
    prefix="AZURE_",
    names=_named(
        "azure",
        {
            "account_name": "_storage_account_name _storage_account",
            "account_key": "_storage_account_key _storage_access_key _storage_master_key _storage_key",
            "sas_token": "_storage_sas_token _storage_sas_key sas_key",
            "connection_string": "_storage_connection_string",
            "client_id": "_storage_client_id",
            "client_secret": "_storage_client_secret",
            "tenant_id": "_storage_tenant_id _authority_id _storage_authority_id",
            "authority_host": "_storage_authority_host",
            "federated_token_file": "",
            "bearer_token": "_storage_token",
            "use_azure_cli": "",
            "skip_signature": "anon",
            "msi_endpoint": "_identity_endpoint",
            "endpoint": "_storage_endpoint endpoint_url",
            "use_emulator": "_storage_use_emulator",
            "allow_http": "_storage_allow_http",
        },
    ),
    shown=(
        *("account_name", "account_key", "sas_token", "connection_string", "client_id", "client_secret", "tenant_id"),
        *("endpoint", "use_emulator", "allow_http", "bearer_token", "federated_token_file", "use_azure_cli"),
        *("authority_host", "msi_endpoint", "skip_signature", "AZURE_STORAGE_ACCOUNT_NAME"),
        *("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING"),
    ),
    credentials="AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or AZURE_STORAGE_SAS_TOKEN",
    secret=frozenset({"account_key", "sas_token", "connection_string", "client_secret", "bearer_token"}),
)

GCS_OPTIONS = OptionNames(
    service="Google Cloud",
    prefix="GOOGLE_",
    names=_named(
        "google",
        {
            "service_account": "service_account_path _service_account_path",
            "service_account_key": "",
            "application_credentials": "",
            "bearer_token": "",
            "token": "",
            "project": "_cloud_project _cloud_quota_project user_project",
            "endpoint": "_base_url base_url endpoint_url",
            "skip_signature": "anon",
            "allow_http": "",
        },
    ),
    shown=(
        *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY", "project"),
        *("token", "endpoint", "skip_signature", "allow_http", "service_account", "service_account_key"),
        *("application_credentials", "bearer_token", "GOOGLE_CLOUD_PROJECT"),
    ),
    credentials="GOOGLE_APPLICATION_CREDENTIALS, the path of a key file",
    secret=frozenset({"service_account_key", "bearer_token", "token"}),
    # It is set on many machines for other tools, and who pays for a request is not decided by the way.
    not_from_environment=frozenset({"google_cloud_project"}),
)

_ALL = (S3_OPTIONS, AZURE_OPTIONS, GCS_OPTIONS)


def is_true(text: str | None) -> bool:
    """Whether an option is switched on.

    >>> [is_true(t) for t in ("true", "1", "False", None)]
    [True, True, False, False]
    """
    return (text or "").strip().lower() in ("true", "1", "yes", "on")
