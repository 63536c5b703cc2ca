"""What lies on storage is damaged."""

from __future__ import annotations

from typing import Self

from headwater.base.errors.action import Action
from headwater.base.errors.root import HeadwaterError
from headwater.base.kinds import VIEW, KindWords, words_of

__all__ = ["CorruptionError"]


class CorruptionError(HeadwaterError):
    """What lies on storage is damaged."""

    @classmethod
    def log_entry(cls, path: str, why: str, where: str) -> Self:
        return cls(
            "E5001",
            f"log entry `{path}` cannot be read: {why}",
            where=where,
            hint="restore that file from a backup",
            actions=[Action("read_before", also=True)],
        )

    @classmethod
    def log_gap(cls, missing: int, where: str) -> Self:
        return cls(
            "E5002",
            f"the log has a gap: version {missing} is missing",
            where=where,
            hint="restore the missing file of `_delta_log`; versions before it can still be read",
        )

    @classmethod
    def checkpoint(cls, path: str, why: str, where: str) -> Self:
        return cls(
            "E5003",
            f"checkpoint `{path}` cannot be read: {why}",
            where=where,
            hint="delete that file if the commits before it are still there: a new one is made at the next write",
        )

    @classmethod
    def data_file(cls, path: str, why: str, where: str) -> Self:
        return cls(
            "E5004",
            f"data file `{path}` cannot be read: {why}",
            where=where,
            hint="restore the file",
            actions=[Action("restore_table", which="a version without it")],
        )

    @classmethod
    def deletion_vector(cls, path: str, why: str, where: str) -> Self:
        return cls(
            "E5005",
            f"the deletion vector of `{path}` cannot be read: {why}",
            where=where,
            hint="restore the vector's file",
            actions=[Action("restore_table", which="an earlier version")],
        )

    @classmethod
    def state_file(cls, path: str, why: str, where: str) -> Self:
        return cls("E5006", f"file `{path}` is damaged: {why}", where=where, hint="restore it from a backup")

    @classmethod
    def no_metadata(cls, where: str) -> Self:
        return cls(
            "E5007",
            "the log has no metadata or protocol entry",
            where=where,
            hint="the first commits of the table were lost: restore `_delta_log` from a backup",
        )

    @classmethod
    def run_file(cls, path: str, why: str, where: str) -> Self:
        return cls(
            "E5008",
            f"run file `{path}` cannot be used: {why}",
            where=where,
            hint="restore an older checkpoint that does not name it, or delete the state: it is computed again "
            "from its sources",
        )

    @classmethod
    def manifest(cls, path: str, why: str, where: str) -> Self:
        return cls(
            "E5009",
            f"checkpoint `{path}` of the state cannot be used: {why}",
            where=where,
            hint="restore an older checkpoint, or delete the state: it is computed again from its sources",
        )

    @classmethod
    def newer_state(cls, path: str, version: int, newest: int, where: str) -> Self:
        return cls(
            "E5010",
            f"`{path}` has format version {version}, and this Headwater reads up to {newest}",
            where=where,
            hint="read it with the Headwater that wrote it, or a later one; nothing was changed",
        )

    @classmethod
    def other_layout(cls, path: str, have: str, want: str, where: str) -> Self:
        return cls(
            "E5011",
            f"`{path}` holds rows of another layout: {have} instead of {want}",
            where=where,
            hint="the computation has changed since: delete the state, and it is computed again from its sources",
        )

    @classmethod
    def derived_state(cls, why: str, where: str, kind: KindWords = VIEW) -> Self:
        return cls(
            "E5012",
            f"the state of the {kind.it} does not fit its table: {why}",
            where=where,
            actions=[Action("rebuild", kind=kind)],
        )

    @classmethod
    def record_file(cls, path: str, why: str, where: str | None = None) -> Self:
        return cls(
            "E5013",
            f"record file `{path}` cannot be used: {why}",
            where=where,
            actions=[Action("rebuild", kind=words_of("online"))],
        )
