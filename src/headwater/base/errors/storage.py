"""Storage refuses or fails."""

from __future__ import annotations

from typing import Self

from headwater.base.errors.action import Action
from headwater.base.errors.root import HeadwaterError

__all__ = ["StorageError"]


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
    def bad_url(cls, url: str) -> Self:
        return cls(
            "E6004", f"`{url}` is not a location Headwater can open", hint="use a path, file://… or s3://bucket/prefix"
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
    def no_bucket(cls, bucket: str, path: str) -> Self:
        return cls(
            "E6006", f"there is no bucket `{bucket}`", where=path, hint="create it, or check its name and the endpoint"
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
        return self.code in ("E6001", "E6002")

    def __str__(self) -> str:  # OSError's own __str__ would win otherwise
        return HeadwaterError.__str__(self)
