"""Addresses: which service, account, bucket and prefix a URL names, and when two URLs name the same place.

One place has many spellings. ``s3a://`` is ``s3://``; a container of Azure is ``az://container`` where the account is
an option, and ``abfss://container@account.dfs.core.windows.net`` where the URL names it, as Spark and delta-spark write
it into logs. Everything that compares or opens places reads them here, once, so that a vacuum recognises its own files
under any name.

| service | spellings | kept as |
|---|---|---|
| S3 | ``s3://bucket/prefix``, ``s3a``, ``s3n`` | ``s3://bucket/prefix`` |
| Azure | ``az://container/prefix``, ``azure``, ``abfs``, ``abfss`` | ``az://container/prefix`` |
| Azure, with account | ``abfs[s]://c@account.dfs.core.windows.net/prefix``, ``.blob.`` | ``abfss://c@…`` |
| Google Cloud | ``gs://bucket/prefix``, ``gcs`` | ``gs://bucket/prefix`` |

A URL holds no credentials: a signature, or a user and password, is refused, and the error does not repeat it. The host
of an account must be one of Microsoft's: a Delta log may name files anywhere, and must not be able to send a token to
another host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from headwater.base.errors import StorageError

__all__ = ["SCHEMES", "Address", "ServiceName", "parse_address"]

ServiceName = Literal["s3", "azure", "gcs"]

SCHEMES: dict[str, ServiceName] = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("az", "azure", "abfs", "abfss"), "azure"),
    **dict.fromkeys(("gs", "gcs"), "gcs"),
}

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://([^/?#]*)(.*)", re.DOTALL)
_ACCOUNT = re.compile(
    r"([a-z0-9]{3,24})\.(?:dfs|blob)\.(core\.windows\.net|core\.usgovcloudapi\.net|core\.chinacloudapi\.cn)"
)
_SIGNATURE = re.compile(r"\?(?:.*&)?(?:sig|X-Amz-Signature|X-Goog-Signature)=", re.IGNORECASE)
_KEPT: dict[ServiceName, str] = {"s3": "s3", "azure": "az", "gcs": "gs"}
_PUBLIC = "core.windows.net"


@dataclass(frozen=True, slots=True)
class Address:
    """A prefix of a bucket; ``account`` where the URL names one, with its cloud's domain."""

    service: ServiceName
    bucket: str
    prefix: str
    account: str | None = None
    domain: str | None = None

    @property
    def root(self) -> str:
        """The bucket's URL, in the spelling that is kept."""
        if self.account is not None:
            return f"abfss://{self.bucket}@{self.account}.dfs.{self.domain}"
        return f"{_KEPT[self.service]}://{self.bucket}"

    @property
    def url(self) -> str:
        return f"{self.root}/{self.prefix}" if self.prefix else self.root

    @property
    def endpoint(self) -> str | None:
        """Where the account's service answers, if it is not in Azure's public cloud."""
        if self.account is None or self.domain == _PUBLIC:
            return None
        return f"https://{self.account}.blob.{self.domain}"

    def shares_bucket(self, other: Address) -> bool:
        """Whether both lie in one bucket; an account that only one of them names may be the same.

        >>> parse_address("az://c/lake").shares_bucket(parse_address("abfss://c@acme.dfs.core.windows.net/x"))
        True
        """
        same = (self.service, self.bucket) == (other.service, other.bucket)
        return same and not (self.account and other.account and self.account != other.account)


def parse_address(url: str) -> Address:
    """The place that a URL of an object store names.

    >>> parse_address("s3a://bucket/a/b").url, parse_address("abfs://c@acme.dfs.core.windows.net/x/").url
    ('s3://bucket/a/b', 'abfss://c@acme.dfs.core.windows.net/x')
    """
    found = _URL.fullmatch(url)
    if found is None:
        raise StorageError.bad_url(url, url.partition(":")[0].lower())
    scheme, authority, rest = found[1].lower(), found[2], found[3]
    if scheme not in SCHEMES:  # what stands before an @ may be a password
        raise StorageError.bad_url(f"{scheme}://{authority.rpartition('@')[2]}{rest.partition('?')[0]}", scheme)
    service, (bucket, at, host) = SCHEMES[scheme], authority.partition("@")
    shown = f"{scheme}://{host or bucket}/…"
    if ":" in authority or (at and service != "azure"):
        raise StorageError.secret_in_url(shown, "a user, a password or a port")
    if _SIGNATURE.search(rest):
        raise StorageError.secret_in_url(shown, "a signature")
    if not bucket:
        raise StorageError.bad_url(url)
    if not at:
        return Address(service, bucket, rest.strip("/"))
    account = _ACCOUNT.fullmatch(host)
    if account is None:
        raise StorageError.unknown_account_host(f"{scheme}://{bucket}@{host}", host)
    return Address(service, bucket, rest.strip("/"), account[1], account[2])
