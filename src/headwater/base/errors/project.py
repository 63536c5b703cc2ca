"""A project of derived artefacts that cannot be used as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.base.errors.config import ConfigError
from headwater.base.errors.wording import candidates_hint, did_you_mean, list_some

__all__ = ["ProjectError"]

_SHOWN = 20


class ProjectError(ConfigError):
    """A project of derived artefacts that cannot be used as it is."""

    @classmethod
    def not_found(cls, folder: str) -> Self:
        hint = "make a project here with `headwater init`, or name its folder"
        return cls("E1900", "there is no headwater.yaml in this folder or above it", where=folder, hint=hint)

    @classmethod
    def duplicate_name(cls, name: str, where: str, first: str) -> Self:
        hint = f"it is declared in {first} too: every node has a name of its own"
        return cls("E1901", f"`{name}` is declared twice", where=where, hint=hint)._about(name)

    @classmethod
    def cycle(cls, names: Sequence[str], where: str) -> Self:
        """``names`` begins and ends with the same one; each reads the next."""
        what = " reads ".join(f"`{name}`" for name in names)
        return cls("E1902", f"a cycle: {what}", where=where, hint="let one of them read tables instead")

    @classmethod
    def unknown_relation(cls, node: str, name: str, known: Sequence[str], where: str) -> Self:
        hint = (
            f"{candidates_hint(name, known, 'tables and views')}; declare a table that lies elsewhere under `sources:`"
        )
        return cls(
            "E1903", f"`{node}` reads `{name}`, which is neither in the project nor in the lake", where=where, hint=hint
        )._about(name)

    @classmethod
    def late_setting(cls, key: str, where: str) -> Self:
        hint = "settings stand in the first lines of the file, before all other comments and the query"
        return cls("E1904", f"the setting `{key}` stands too late to count", where=where, hint=hint)._about(key)

    @classmethod
    def no_query(cls, where: str) -> Self:
        return cls("E1905", "the file holds no query", where=where, hint="write one SELECT behind the settings")

    @classmethod
    def mistakes(cls, mistakes: Sequence[str], codes: Sequence[str], where: str) -> Self:
        """All mistakes of a project at once, so that they can be corrected at once."""
        more = [f"… {len(mistakes) - _SHOWN} more"] if len(mistakes) > _SHOWN else []
        return cls(
            "E1906",
            f"the project has {len(mistakes)} mistakes ({list_some(codes)})",
            where="\n         ".join([*mistakes[:_SHOWN], *more]) or where,
            hint="correct them, and run it again: nothing was changed",
        )

    @classmethod
    def source_missing(cls, name: str, location: str, where: str) -> Self:
        return cls(
            "E1907",
            f"the source `{name}` is not there: no Delta table at {location}",
            where=where,
            hint="make the table first, or correct its `location`",
        )._about(name)

    @classmethod
    def source_column(cls, source: str, column: str, known: Sequence[str], where: str) -> Self:
        return cls(
            "E1908",
            f"the source `{source}` has no column `{column}`, which the project expects",
            where=where,
            hint=candidates_hint(column, known, "columns"),
        )._about(column)

    @classmethod
    def source_type(cls, source: str, column: str, has: str, expected: str, where: str) -> Self:
        return cls(
            "E1909",
            f"the column `{column}` of the source `{source}` is of type {has}, and the project expects {expected}",
            where=where,
            hint="correct the table, or what the project expects of it",
        )._about(column)

    @classmethod
    def code_failed(cls, what: str, where: str) -> Self:
        return cls("E1910", f"Python code of the project failed: {what}", where=where, hint="correct the code")

    @classmethod
    def taken_by(cls, name: str, has: str, wanted: str, where: str) -> Self:
        return cls(
            "E1911",
            f"`{name}` is to be {wanted}, and the lake has {has} of that name",
            where=where,
            hint="give it another name, or drop what has the name now",
        )._about(name)

    @classmethod
    def unknown_node(cls, name: str, known: Sequence[str], where: str) -> Self:
        hint = candidates_hint(name, known, "nodes")
        return cls("E1912", f"the project has no node `{name}`", where=where, hint=hint)._about(name)

    @classmethod
    def bad_selector(cls, text: str, where: str) -> Self:
        hint = "write `node`, `+node` (with what it reads), `node+` (with what reads it), or `tag:name`"
        return cls("E1913", f"`{text}` selects nothing", where=where, hint=hint)._about(text)

    @classmethod
    def folder_taken(cls, folder: str, files: Sequence[str]) -> Self:
        hint = "choose an empty folder; nothing was written"
        return cls(
            "E1914", f"the folder has files that a new project would have: {list_some(files)}", where=folder, hint=hint
        )

    @classmethod
    def unknown_profile(cls, name: str, known: Sequence[str], where: str) -> Self:
        near = did_you_mean(name, known)
        lead = f"did you mean `{near}`? " if near else ""
        return cls(
            "E1915", f"there is no profile `{name}`", where=where, hint=f"{lead}profiles: {list_some(known)}"
        )._about(name)

    @classmethod
    def full_refused(cls, name: str, reason: str, where: str) -> Self:
        return cls(
            "E1916",
            f"`{name}` would be computed from scratch: {reason}",
            where=where,
            hint="run it without --strict where that is meant",
        )._about(name)

    @classmethod
    def attached_elsewhere(cls, name: str, has: str, wanted: str, where: str) -> Self:
        return cls(
            "E1917",
            f"the source `{name}` is to lie at {wanted}, and the lake has it at {has}",
            where=where,
            hint="detach it first, or correct its `location`",
        )._about(name)

    @classmethod
    def source_replaced(cls, name: str, readers: Sequence[str], where: str) -> Self:
        return cls(
            "E1918",
            f"the source `{name}` was dropped and made again since {list_some([f'`{r}`' for r in readers])} read it",
            where=where,
            hint="its readers would be computed from scratch: run it without --strict where that is meant",
        )._about(name)

    @classmethod
    def no_dbt_project(cls, folder: str) -> Self:
        return cls("E1919", "there is no dbt_project.yml", where=folder, hint="name the folder of a dbt project")

    @classmethod
    def wrong_engine(cls, engine: str, known: Sequence[str], where: str) -> Self:
        hint = f"engines: {list_some(known)}; a profile with `spark:` has the engine spark"
        return cls("E1920", f"there is no engine `{engine}` in this profile", where=where, hint=hint)._about(engine)

    @classmethod
    def unsupported_setting(cls, key: str, why: str, where: str) -> Self:
        return cls("E1921", f"`{key}` is not supported: {why}", where=where, hint=f"leave `{key}` out")._about(key)

    @classmethod
    def not_applied(cls, name: str, where: str) -> Self:
        hint = f"refresh it with what it reads: headwater refresh +{name}"
        return cls("E1922", f"`{name}` was never built", where=where, hint=hint)._about(name)

    @classmethod
    def unknown_test(cls, kind: str, known: Sequence[str], where: str) -> Self:
        hint = candidates_hint(kind, known, "data tests")
        return cls("E1924", f"there is no data test `{kind}`", where=where, hint=hint)._about(kind)

    @classmethod
    def bad_test(cls, node: str, what: str, hint: str | None, where: str) -> Self:
        return cls("E1925", f"a data test of `{node}` is not complete: {what}", where=where, hint=hint)._about(node)

    @classmethod
    def test_column(cls, node: str, column: str, known: Sequence[str], where: str) -> Self:
        hint = candidates_hint(column, known, "columns")
        return cls("E1926", f"a data test reads `{node}.{column}`, which is not there", where=where, hint=hint)._about(
            column
        )

    @classmethod
    def test_cycle(cls, test: str, node: str, reads: str, where: str) -> Self:
        return cls(
            "E1927",
            f"the data test `{test}` of `{node}` reads `{reads}`, which is refreshed only after it has passed",
            where=where,
            hint=f"declare it as a test of `{reads}`",
        )._about(test)

    @classmethod
    def test_failed(cls, what: str, where: str) -> Self:
        hint = "correct the rows and refresh again; what reads them keeps its last rows until then"
        return cls("E1928", f"a data test failed: {what}", where=where, hint=hint)

    @classmethod
    def blocked(cls, name: str, because: Sequence[str], where: str) -> Self:
        return cls(
            "E1923",
            f"`{name}` was left as it is, because {list_some([f'`{one}`' for one in because])} could not be refreshed",
            where=where,
            hint="its rows are those of its last frontier",
        )._about(name)
