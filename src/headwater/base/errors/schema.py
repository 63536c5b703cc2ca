"""Types or columns that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.base.errors.action import Action, Hint, define_again
from headwater.base.errors.input import InputError
from headwater.base.errors.wording import did_you_mean, list_some, top_level
from headwater.base.kinds import VIEW, KindWords

__all__ = ["SchemaError"]


class SchemaError(InputError):
    """Types or columns that do not fit."""

    @classmethod
    def type_clash(cls, column: str, have: str, want: str, where: str | None = None) -> Self:
        return cls(
            "E1201",
            f"column `{column}` is {want}, but the data holds {have}",
            where=where,
            hint=f"cast it to {want}",
            actions=[Action("widen_column", column=top_level(column))],
        )

    @classmethod
    def extra_columns(cls, extra: Sequence[str], known: Sequence[str], where: str | None = None) -> Self:
        near = did_you_mean(extra[0], known)
        lead = f"did you mean `{near}`? " if near else ""
        return cls(
            "E1202",
            f"the data has columns the table lacks: {list_some(extra)}",
            where=where,
            hint=f"{lead}drop them",
            actions=[Action("evolve_schema")],
        )

    @classmethod
    def column_count(cls, given: int, wanted: Sequence[str], where: str | None = None) -> Self:
        return cls(
            "E1211",
            f"{given} column(s) are given for {len(wanted)}: {list_some(wanted)}",
            where=where,
            hint="give one value for each column",
            actions=[Action("name_columns")],
        )

    @classmethod
    def missing_columns(cls, missing: Sequence[str], where: str | None = None) -> Self:
        return cls(
            "E1203",
            f"the data lacks required columns: {list_some(missing)}",
            where=where,
            hint="they are NOT NULL in the table, so each row must have a value",
        )

    @classmethod
    def unknown_type(cls, text: str, system: str) -> Self:
        return cls("E1204", f"{system} type `{text}` has no Delta counterpart", hint="cast the column first")

    @classmethod
    def duplicate_columns(cls, names: Sequence[str]) -> Self:
        return cls(
            "E1205",
            f"column names clash (case does not tell them apart): {list_some(names)}",
            hint="rename one of them",
        )

    @classmethod
    def bad_widening(cls, column: str, have: str, want: str) -> Self:
        return cls(
            "E1206",
            f"column `{column}` cannot be widened from {have} to {want}",
            actions=[Action("safe_widenings")],
        )

    @classmethod
    def bad_column_name(cls, name: str) -> Self:
        return cls(
            "E1207",
            f"`{name}` cannot be a column name without column mapping",
            hint="avoid the characters ' ,;{}()\\n\\t='",
            actions=[Action("map_columns")],
        )

    @classmethod
    def reserved_column(cls, name: str, kind: KindWords = VIEW) -> Self:
        return cls(
            "E1212",
            f"`{name}` cannot be a column of {kind.one}: changes of tables have a column of that name",
            hint="give it another name with AS",
        )

    @classmethod
    def feature_values(cls, feature: str, kind: str, why: str) -> Self:
        return cls(
            "E1770",
            f"the values of the feature `{feature}` do not fit its type {kind}: {why}",
            hint="mend them, or declare the type that they have in the feature view",
        )

    @classmethod
    def feature_view_changed(cls, table: str, what: str) -> Self:
        return cls(
            "E1771",
            f"the feature view of the table `{table}` has changed, and a new table would have no rows: {what}",
            hint="give the feature view another name, or set on_schema_change: recreate and materialize it again",
        )

    @classmethod
    def bad_partition(cls, column: str, why: str) -> Self:
        return cls(
            "E1208", f"cannot partition by `{column}`: {why}", hint="partition by a plain, low-cardinality column"
        )

    @classmethod
    def conflicting(cls, why: str, where: str, hint: Hint) -> Self:
        return cls("E1209", why, where=where, hint=hint)

    @classmethod
    def source_changed(cls, view: str, table: str, what: str, kind: KindWords = VIEW) -> Self:
        return cls(
            "E1605",
            f"the {kind.it} `{view}` can no longer be computed from `{table}`: {what}",
            actions=[define_again(intro="define it again", name=view, kind=kind)],
        )

    @classmethod
    def value_out_of_range(cls, column: str, want: str, why: str, where: str | None = None) -> Self:
        return cls(
            "E1210",
            f"a value of column `{column}` does not fit {want}: {why}",
            where=where,
            hint="nothing was written; mend the rows, or widen the column",
        )

    @classmethod
    def interval_column(cls, column: str, dtype: str, hint: Hint) -> Self:
        return cls(
            "E1213", f"column `{column}` is of type {dtype}, which neither a table nor an answer can hold", hint=hint
        )

    # -- online tables ---------------------------------------------------------------------------------------------

    @classmethod
    def not_servable(cls, column: str, kind: str, where: str | None = None) -> Self:
        return cls(
            "E1701",
            f"column `{column}` has type {kind}, which an online table cannot hold",
            where=where,
            hint="leave it out, or serve a view that has what you need of it: numbers, strings, booleans, dates, "
            "timestamps, decimals, or lists of numbers",
        )

    @classmethod
    def bad_keys(cls, column: str, kind: str, why: str, where: str | None = None) -> Self:
        return cls(
            "E1702",
            f"the keys do not fit `{column}` of type {kind}: {why}",
            where=where or None,
            hint=f"give values of type {kind}, one for each row that is wanted",
        )

    @classmethod
    def pushed_columns(cls, missing: Sequence[str], extra: Sequence[str], known: Sequence[str], where: str) -> Self:
        """Rows that are pushed to an online table have other columns than it has."""
        parts = [f"lack {list_some(missing)}"] if missing else []
        parts += [f"have {list_some(extra)}, which the table has not"] if extra else []
        near = did_you_mean(extra[0], missing or known) if extra else None
        lead = f"did you mean `{near}`? " if near else ""
        return cls(
            "E1737",
            f"the rows {' and '.join(parts)}",
            where=where,
            hint=f"nothing was written; {lead}give every column, null where there is no value: {list_some(known, 20)}",
        )

    @classmethod
    def pushed_values(cls, column: str, want: str, why: str, where: str) -> Self:
        """A column of rows that are pushed to an online table does not fit."""
        hint = f"nothing was written; give values of type {want}"
        return cls("E1738", f"the values of `{column}` cannot be taken: {why}", where=where, hint=hint)

    @classmethod
    def not_pushed(cls, name: str, where: str) -> Self:
        return cls(
            "E1739",
            f"rows of `{name}` cannot be written or deleted here: they come from its source",
            where=where,
            hint="change the source, or declare a table with `source: push`",
        )._about(name)
