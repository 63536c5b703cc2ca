"""A table, column, version or file that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.base.errors.action import Action, define_again
from headwater.base.errors.input import InputError
from headwater.base.errors.wording import candidates_hint, list_some
from headwater.base.kinds import VIEW, KindWords

__all__ = ["NotFoundError"]


class NotFoundError(InputError, LookupError):
    """A name, version or file that is not there."""

    @classmethod
    def table(cls, name: str, known: Sequence[str], where: str) -> Self:
        hint = candidates_hint(name, known, "tables")
        return cls("E1101", f"no table `{name}`", where=where, hint=hint)._about(name)

    @classmethod
    def derived(cls, name: str, kind: KindWords, known: Sequence[str], where: str) -> Self:
        hint = candidates_hint(name, known, kind.plural)
        return cls("E1601", f"no {kind.singular} `{name}`", where=where, hint=hint)._about(name)

    @classmethod
    def source(cls, view: str, source: str, known: str, where: str, kind: KindWords = VIEW) -> Self:
        again = define_again(intro=f"define the {kind.it} over another one", name=view, kind=kind)
        return cls(
            "E1612",
            f"the {kind.singular} `{view}` reads `{source}`, and there is no such table",
            where=where,
            hint=("bring the table back", again, known),
        )._about(source)

    @classmethod
    def function(cls, name: str, view: str, fingerprint: str, known: Sequence[str], kind: KindWords = VIEW) -> Self:
        given = f"registered: {list_some(known)}" if known else "none is registered"
        tail = f", as it was then (fingerprint {fingerprint})"
        return cls(
            "E1606",
            f"the {kind.singular} `{view}` calls {name}(), and no function of that name is registered here",
            hint=(Action("register_function", name=name, tail=tail), given),
        )._about(name)

    @classmethod
    def feature_function(cls, name: str, path: str, kind: KindWords) -> Self:
        return cls(
            "E1617",
            f"the {kind.singular} `{name}` is computed by the function {path}, which this process does not have",
            actions=[Action("give_function", name=name)],
        )._about(name)

    @classmethod
    def attached(cls, name: str, known: Sequence[str], where: str) -> Self:
        return cls(
            "E1109",
            f"no table is attached as `{name}`",
            where=where,
            hint=f"attached: {list_some(known)}" if known else ("none is", Action("drop_table", also=True, name=name)),
        )

    @classmethod
    def port(cls, kind: str, name: str, known: Sequence[str]) -> Self:
        return cls("E1501", f"the circuit has no {kind} `{name}`", hint=candidates_hint(name, known, f"{kind}s"))

    @classmethod
    def column(cls, name: str, known: Sequence[str], where: str | None = None) -> Self:
        hint = candidates_hint(name, known, "columns")
        return cls("E1002", f"no column `{name}`", where=where, hint=hint)._about(name)

    @classmethod
    def ambiguous(cls, name: str, choices: Sequence[str], where: str | None = None) -> Self:
        what = f"`{name}` is ambiguous: {len(choices)} columns match"
        return cls("E1110", what, where=where, hint=f"say which one is meant: {list_some(choices)}")

    @classmethod
    def version(cls, version: int, newest: int, where: str) -> Self:
        return cls("E1102", f"no version {version}", where=where, hint=f"versions run from 0 to {newest}")

    @classmethod
    def no_earlier_version(cls, version: int, where: str) -> Self:
        return cls(
            "E1120",
            f"no version before {version}, which is the first",
            where=where,
            hint="there is nothing to compare it with: give two versions, or commit once more",
        )

    @classmethod
    def version_gone(cls, version: int, oldest: int, newest: int, where: str) -> Self:
        return cls(
            "E1103",
            f"version {version} can no longer be rebuilt: its log entries were cleaned up",
            where=where,
            hint=f"versions {oldest} to {newest} can be read; keep more with delta.logRetentionDuration",
        )

    @classmethod
    def commit_gone(cls, number: int, oldest: int, newest: int, name: str, kind: KindWords) -> Self:
        return cls(
            "E1119",
            f"commit {number} of the {kind.singular} `{name}` is not kept any more",
            hint=f"{kind.plural} keep their last commits: here {oldest} to {newest}",
        )._about(name)

    @classmethod
    def timestamp(cls, timestamp: str, first: str, where: str) -> Self:
        return cls(
            "E1104",
            f"nothing was committed at or before {timestamp}",
            where=where,
            hint=f"the earliest commit that can be read is of {first}",
        )

    @classmethod
    def files(cls, location: str) -> Self:
        return cls(
            "E1113",
            "there are no files to read",
            where=location,
            hint="files whose names begin with `_` or `.` do not count",
            actions=[Action("check_files", also=True)],
        )

    @classmethod
    def data_file(cls, path: str, where: str, version: int) -> Self:
        return cls(
            "E1105",
            f"data file `{path}` of version {version} is missing",
            where=where,
            hint="a vacuum removed it, or it was deleted by hand: read a newer version, or restore the file",
        )

    @classmethod
    def deletion_vector(cls, path: str, file: str, where: str, version: int) -> Self:
        return cls(
            "E1114",
            f"deletion vector `{path}` of data file `{file}`, version {version}, is missing",
            where=where,
            hint="a vacuum removed it, or it was deleted by hand: read a newer version, or restore the file",
        )

    @classmethod
    def not_published(cls, name: str, asked: str, first: str | None, kind: KindWords) -> Self:
        known = "nothing that it published is known" if first is None else f"it is known since {first}"
        return cls(
            "E1618",
            f"the {kind.singular} `{name}` published nothing at {asked}, as far as is known",
            hint=f"{known}; what was published before Headwater wrote that down is lost",
        )._about(name)

    @classmethod
    def source_replaced(cls, name: str, source: str, kind: KindWords) -> Self:
        return cls(
            "E1619",
            f"what the {kind.singular} `{name}` answered then came of another table than `{source}` is now",
            hint="it cannot be read any more; ask for a later moment",
        )._about(source)

    @classmethod
    def history_gone(cls, name: str, asked: str, since: str, where: str) -> Self:
        return cls(
            "E1115",
            f"what `{name}` said at {asked} is not known any more: log entries or files of that time were deleted",
            where=where,
            hint=f"it is known since {since}; keep more with delta.logRetentionDuration, and vacuum less",
        )._about(name)

    @classmethod
    def no_commit(cls, timestamp: str, side: str, where: str) -> Self:
        return cls(
            "E1111",
            f"nothing was committed at or {side} {timestamp}",
            where=where,
            actions=[Action("show_history", tail=" with their times")],
        )

    @classmethod
    def object(cls, path: str, where: str) -> Self:
        return cls("E1106", f"no file `{path}`", where=where)

    @classmethod
    def constraint(cls, name: str, known: Sequence[str], where: str) -> Self:
        return cls("E1107", f"no constraint `{name}`", where=where, hint=candidates_hint(name, known, "constraints"))

    @classmethod
    def folder(cls, location: str) -> Self:
        return cls("E1108", "there is no such folder", where=location, hint="create it, or check the path")

    @classmethod
    def state(cls, what: str, name: str, known: Sequence[str], where: str) -> Self:
        hint = candidates_hint(name, known, f"{what}s")
        return cls("E1112", f"the state has no {what} `{name}`", where=where, hint=hint)._about(name)
