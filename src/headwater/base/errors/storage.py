"""Storage refuses or fails."""

from __future__ import annotations

import re
from typing import Self

from headwater.base.errors.action import Action
from headwater.base.errors.root import HeadwaterError
from headwater.base.errors.wording import did_you_mean

__all__ = ["StorageError"]

_LOCATIONS = "a path, file://…, s3://bucket/prefix, az://container/prefix, abfss://… or gs://bucket/prefix"
_SCHEMES = ("s3", "s3a", "az", "azure", "abfs", "abfss", "gs", "gcs", "file")
_OF_HADOOP = ("hdfs", "viewfs", "webhdfs", "swebhdfs", "har", "ofs", "o3fs")
_BLOB_HOST = re.compile(r"https?://([a-z0-9]+)\.(?:blob|dfs)\.core\.windows\.net/([^/]+)/?(.*)")
_BUCKET_HOST = re.compile(r"https?://storage\.(?:googleapis|cloud\.google)\.com/(.+)")


def _instead(scheme: str | None, url: str) -> str | None:
    """The same place by a name that can be opened, where one is known."""
    if scheme in ("http", "https"):
        if found := _BLOB_HOST.fullmatch(url):
            return f"use abfss://{found[2]}@{found[1]}.dfs.core.windows.net/{found[3]}".rstrip("/")
        if found := _BUCKET_HOST.fullmatch(url):
            return f"use gs://{found[1]}"
        return f"a web address holds no lake; use {_LOCATIONS}"
    if scheme in ("wasb", "wasbs"):
        return "use abfss://container@account.dfs.core.windows.net/prefix, which names the same container"
    if scheme == "dbfs":
        return "use what it is mounted from (s3://…, abfss://… or gs://…), or the path below /dbfs where there is one"
    return None


class StorageError(HeadwaterError, OSError):
    """Storage refuses or fails."""

    @classmethod
    def denied(cls, path: str, why: str) -> Self:
        return cls("E6001", f"no permission: {why}", where=path, hint="check the folder's rights or the credentials")

    @classmethod
    def full(cls, path: str) -> Self:
        return cls("E6002", "no space is left on the device", where=path, hint="free some space; nothing was committed")

    @classmethod
    def failed(cls, path: str, why: str) -> Self:
        what = "that the endpoint is up" if "://" in path else "the disk"
        return cls("E6003", f"storage failed: {why}", where=path, hint=f"check {what}, then try again")

    @classmethod
    def bad_url(cls, url: str, scheme: str | None = None) -> Self:
        """``scheme`` where it is the one that is not known."""
        message = f"`{url}` is not a location Headwater can open"
        near = did_you_mean(scheme, _SCHEMES) if scheme else None
        hint = _instead(scheme, url) or (f"did you mean {near}://…? " if near else "") + f"use {_LOCATIONS}"
        actions = [Action("copy_from_hadoop")] if scheme in _OF_HADOOP else []
        return cls("E6004", message, hint=None if actions else hint, actions=actions)

    @classmethod
    def secret_in_url(cls, url: str, what: str) -> Self:
        return cls(
            "E6009",
            f"the location has {what} in it, which is not shown here",
            where=url,
            actions=[Action("credentials")],
        )

    @classmethod
    def unknown_account_host(cls, url: str, host: str) -> Self:
        return cls(
            "E6010",
            f"`{host}` is not the host of a storage account of Azure",
            where=url,
            hint="use abfss://container@account.dfs.core.windows.net/prefix, or az://… with the option `endpoint`",
        )

    @classmethod
    def no_credentials(cls, service: str, path: str, names: str) -> Self:
        return cls(
            "E6011",
            f"no credentials for {service} were found",
            where=path,
            actions=[Action("give_credentials", names=names)],
        )

    @classmethod
    def bad_credentials_file(cls, file: str, why: str, path: str) -> Self:
        return cls(
            "E6012",
            f"the credentials in `{file}` cannot be used: {why}",
            where=path,
            hint="give the path of a service account's key, or of what `gcloud auth application-default login` wrote",
        )

    @classmethod
    def ignores_conditions(cls, path: str) -> Self:
        return cls(
            "E6013",
            "the service ignores the condition of a put, so that two writers could both be told they had committed",
            where=path,
            hint="nothing was committed; use a service that honours If-None-Match or x-goog-if-generation-match",
        )

    @classmethod
    def not_a_folder(cls, path: str) -> Self:
        return cls("E6007", "a file lies where a folder is wanted", where=path, hint="give the path of a folder")

    @classmethod
    def unreachable(cls, path: str, table: str, why: str) -> Self:
        return cls(
            "E6008",
            f"`{path}`, which the log names by its whole path, cannot be used: {why}",
            where=table,
            actions=[Action("storage_options")],
        )

    @classmethod
    def no_bucket(cls, bucket: str, path: str, word: str = "bucket") -> Self:
        return cls(
            "E6006", f"there is no {word} `{bucket}`", where=path, hint="create it, or check its name and the endpoint"
        )

    @classmethod
    def unknown_result(cls, version: int, path: str, why: str) -> Self:
        return cls(
            "E6005",
            f"it is not known whether version {version} was committed: {why}",
            where=path,
            actions=[Action("check_history")],
        )

    @property
    def is_refusal(self) -> bool:
        """Whether storage said no for certain, so that nothing will come of it later."""
        return self.code in ("E6001", "E6002", "E6011", "E6012", "E6013")

    def __str__(self) -> str:  # OSError's own __str__ would win otherwise
        return HeadwaterError.__str__(self)
