"""What was passed in is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.base.errors.action import Action, Hint, define_again
from headwater.base.errors.root import HeadwaterError
from headwater.base.errors.wording import candidates_hint, list_some
from headwater.base.kinds import VIEW, KindWords, words_of

__all__ = ["InputError"]


class InputError(HeadwaterError, ValueError):
    """What was passed in is wrong."""

    @classmethod
    def bad_argument(cls, name: str, value: object, expected: str) -> Self:
        return cls("E1001", f"`{name}` is {value!r}", hint=f"expected {expected}")

    @classmethod
    def not_confirmed(cls, verb: str, confirm: str, preview: str) -> Self:
        return cls(
            "E8004",
            f"`{verb}` cannot be undone, and nobody can be asked: its input is not a terminal",
            hint=f"nothing was done; see what it would do with {preview}, and confirm it with {confirm}",
        )

    @classmethod
    def bad_name(cls, name: str) -> Self:
        return cls(
            "E1004",
            f"`{name}` cannot be the name of a table",
            hint="use letters, digits and _ (not first a digit), with dots between the parts: sales.orders",
        )._about(name)

    @classmethod
    def already_exists(cls, name: str, location: str) -> Self:
        return cls(
            "E1005",
            f"table `{name}` exists already",
            where=location,
            actions=[Action("existing_table")],
        )

    @classmethod
    def not_arrow(cls, kind: str) -> Self:
        return cls(
            "E1006",
            f"cannot read rows from an object of type {kind}",
            hint="pass a pyarrow Table or RecordBatch(Reader), pandas or polars frame, a Spark DataFrame, "
            "a list of dicts, or anything with __arrow_c_stream__",
        )

    @classmethod
    def bad_setting(cls, name: str, value: str, expected: str) -> Self:
        return cls("E1007", f"setting {name}={value!r} is not valid", hint=f"expected {expected}")

    @classmethod
    def unknown_setting(cls, name: str, known: Sequence[str]) -> Self:
        return cls("E1008", f"no setting `{name}`", hint=candidates_hint(name, known, "settings"))

    @classmethod
    def bad_frontier(cls, text: str, why: str) -> Self:
        return cls("E1009", f"`{text}` is not a frontier: {why}", hint="write it like `orders@42 cards@17`")

    @classmethod
    def retention_too_short(cls, hours: float, minimum: float, where: str) -> Self:
        return cls(
            "E1010",
            f"vacuum with a retention of {hours:g} h could delete files that readers and writers still use",
            where=where,
            hint=f"keep at least {minimum:g} h (delta.deletedFileRetentionDuration)",
            actions=[Action("shorten_retention")],
        )

    @classmethod
    def ambiguous_merge(cls, rows: int, where: str) -> Self:
        return cls(
            "E1011",
            f"{rows} target row(s) match more than one source row, so the result would depend on their order",
            where=where,
            hint="make the source unique by the merge key first (deduplicate, or aggregate)",
        )

    @classmethod
    def unreadable_file(cls, where: str, why: str) -> Self:
        return cls(
            "E1022",
            f"a file cannot be read: {why}",
            where=where,
            actions=[Action("check_format")],
        )

    @classmethod
    def function_raised(cls, operator: str, error: str, where: str) -> Self:
        return cls(
            "E1023",
            f"{operator} raised {error}",
            where=where or None,
            hint="the error is in the function that was given: mend it, or let it return null for such rows",
        )

    @classmethod
    def ambiguous_order(cls, series: str, time: str, column: str) -> Self:
        return cls(
            "E1021",
            f"two rows at {time} differ in `{column}`, so the result would depend on which of them comes first",
            where=series,
            actions=[Action("tiebreak")],
        )

    @classmethod
    def null_times(cls, column: str, count: int | None = None) -> Self:
        """Rows without a time, which no operator in time has a place for; ``count`` where some were counted."""
        named = column if column.isidentifier() else f"`{column}`"
        rows = "at least one row" if count is None else f"at least {count:,} row{'' if count == 1 else 's'}"
        return cls(
            "E1024",
            f"the time column `{column}` is null in {rows}: a row without a time has no place in its series",
            actions=[Action("leave_out_null_times", column=named)],
        )

    @classmethod
    def overlapping_values(cls, series: str, time: str, column: str) -> Self:
        return cls(
            "E1025",
            f"two intervals that overlap at {time} differ in `{column}`, so there is no one value",
            where=series,
            hint="let only one of them hold: shorten the other, aggregate them first, or use two columns",
        )

    @classmethod
    def backward_interval(cls, series: str, start: str, end: str) -> Self:
        return cls(
            "E1026",
            f"an interval ends before it begins: from {start} to {end}",
            where=series,
            actions=[Action("check_ends")],
        )

    @classmethod
    def append_only(cls, where: str) -> Self:
        return cls(
            "E1012",
            "the table is append-only (delta.appendOnly=true), rows cannot be changed or removed",
            where=where,
            actions=[
                Action("set_property", intro="unset the property first", property="delta.appendOnly", value="false")
            ],
        )

    @classmethod
    def bad_frame(cls, why: str) -> Self:
        """An Arrow IPC stream that came from outside, as the body of a request or an answer, cannot be used."""
        return cls(
            "E1760",
            f"the Arrow stream cannot be read: {why}",
            hint="send one stream of Arrow IPC with uncompressed record batches of plain columns",
        )

    @classmethod
    def frame_too_large(cls, column: str, size: int) -> Self:
        return cls(
            "E1761",
            f"column `{column}` would have {size:,} bytes or items in one batch, and Arrow counts them in 31 bits",
            hint="ask for fewer keys at once, or for fewer columns",
        )

    @classmethod
    def nulls_as_numbers(cls, column: str, kind: str, nulls: int) -> Self:
        return cls(
            "E1762",
            f"column `{column}` ({kind}) has {nulls:,} null{'' if nulls == 1 else 's'}, which an array of such "
            "values cannot hold",
            hint="give a value for them: to_numpy(fill=0); or read it with its nulls: to_arrow(), to_polars()",
        )

    @classmethod
    def not_in_answer(cls, what: str, option: str) -> Self:
        return cls("E1763", f"the answer does not say {what}", hint=f"ask for it: fetch(…, {option})")

    @classmethod
    def bad_range(cls, after: int, until: int) -> Self:
        return cls("E1013", f"changes(after={after}, until={until}) runs backwards", hint="after must be <= until")

    @classmethod
    def not_a_table(cls, location: str) -> Self:
        return cls(
            "E1014",
            "the folder holds files but no Delta table",
            where=location,
            hint="attach the folder that contains `_delta_log`, or create the table under another name",
        )

    @classmethod
    def no_change_feed(cls, version: int, where: str) -> Self:
        return cls(
            "E1020",
            f"version {version} of the table has no change data feed",
            where=where,
            actions=[Action("enable_change_feed")],
        )

    @classmethod
    def nested(cls, inner: str, outer: str, where: str) -> Self:
        return cls(
            "E1017",
            f"table `{inner}` would lie in the folder of table `{outer}`",
            where=where,
            hint="their files would mix; give one of them another name",
        )

    @classmethod
    def port_taken(cls, kind: str, name: str) -> Self:
        return cls("E1502", f"the circuit has an {kind} `{name}` already", hint="give this one another name")

    @classmethod
    def has_run(cls, circuit: str) -> Self:
        return cls(
            "E1506",
            f"the circuit `{circuit}` has run, and an operator added now would not know what has passed",
            hint="build a circuit whole before its first step",
            actions=[Action("restore_circuit", also=True)],
        )

    @classmethod
    def in_transaction(cls) -> Self:
        return cls("E1503", "a transaction is under way", hint="end it first: one with block at a time")

    @classmethod
    def other_state(cls, folder: str, operators: Sequence[str]) -> Self:
        return cls(
            "E1505",
            f"the state is that of another circuit: it has nothing for {list_some(operators)}",
            where=folder,
            hint="build the circuit as it was when the checkpoint was made, or start with an empty store",
        )

    @classmethod
    def not_derived(cls, name: str, kind: KindWords, where: str) -> Self:
        """A table has the name under which something derived was asked for."""
        return cls(
            "E1602",
            f"`{name}` is a table, and not {kind.one}",
            where=where,
            hint=f"give the {kind.it} another name",
            actions=[Action("open_table", also=True, name=name)],
        )._about(name)

    @classmethod
    def is_derived(cls, name: str, kind: KindWords, verb: str) -> Self:
        """Something derived would be changed by hand."""
        return cls(
            "E1603",
            f"`{name}` is {kind.one}: {verb} cannot change it",
            actions=[
                Action("refresh_after", name=name, kind=kind),
                define_again(also=True, intro="define it again", name=name, kind=kind),
                Action("drop_derived", also=True, name=name, kind=kind),
            ],
        )._about(name)

    @classmethod
    def derived_exists(cls, name: str, kind: KindWords, where: str) -> Self:
        return cls(
            "E1604",
            f"the {kind.singular} `{name}` exists already",
            where=where,
            actions=[Action("existing_derived", name=name, kind=kind)],
        )._about(name)

    @classmethod
    def name_taken(cls, name: str, kind: str, where: str) -> Self:
        words = words_of(kind)
        return cls(
            "E1614",
            f"`{name}` is the name of {words.one} already",
            where=where,
            hint="take another name",
            actions=[Action("drop_derived", also=True, name=name, kind=words)],
        )._about(name)

    @classmethod
    def other_definition(cls, name: str, have: str, where: str) -> Self:
        return cls(
            "E1616",
            f"`{name}` is there with another definition: {have}",
            where=where,
            hint="open it without a definition, drop it first, or take another name",
        )._about(name)

    @classmethod
    def derived_cycle(cls, names: Sequence[str], kind: KindWords) -> Self:
        what = "itself" if len(names) == 2 else f"itself through others: {' reads '.join(f'`{n}`' for n in names)}"
        return cls(
            "E1608",
            f"the {kind.singular} `{names[0]}` would read {what}",
            hint=f"read the tables that it is made of, or give the {kind.it} another name",
        )

    @classmethod
    def not_built(cls, name: str, version: int, where: str, kind: KindWords = VIEW) -> Self:
        return cls(
            "E1609",
            f"the {kind.singular} `{name}` has no rows to read: at version {version} it was never built",
            where=where,
            actions=[Action("build", name=name, kind=kind)],
        )._about(name)

    @classmethod
    def source_not_built(cls, view: str, source: str, kind: KindWords = VIEW, source_kind: KindWords = VIEW) -> Self:
        return cls(
            "E1610",
            f"the {kind.singular} `{view}` reads `{source}`, which was never built",
            actions=[Action("refresh_first", name=source, reader=view, kind=source_kind)],
        )._about(source)

    @classmethod
    def is_read(cls, name: str, readers: Sequence[str], verb: str, kind: KindWords = VIEW) -> Self:
        which, them = (kind.it, "it") if len(readers) == 1 else (kind.them, "them")
        named = list_some([f"`{one}`" for one in readers])
        return cls(
            "E1611",
            f"`{name}` is read by the {kind.counted(len(readers))} {named}: {verb} would leave {them} without a source",
            hint=f"drop the {which} first",
            actions=[Action("drop_together", name=name)],
        )._about(name)

    @classmethod
    def other_function(cls, name: str, view: str, wanted: str, found: str, kind: KindWords = VIEW) -> Self:
        tail = ", which computes it by the function that is registered"
        return cls(
            "E1607",
            f"the {kind.singular} `{view}` was defined with another function {name}() than the one that is registered",
            hint=f"register the one with the fingerprint {wanted} (this one has {found})",
            actions=[define_again(intro=f"define the {kind.it} again", name=view, kind=kind, tail=tail)],
        )._about(name)

    @classmethod
    def failing_function(cls, name: str, error: BaseException) -> Self:
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        return cls("E1504", f"the function {name} raised {what}", hint="nothing was changed; mend it, and step again")

    @classmethod
    def bad_rows(cls, why: str) -> Self:
        return cls(
            "E1018", f"the rows do not make a table: {why}", hint="give each column one type, and all one length"
        )

    @classmethod
    def unknown_option(cls, name: str, known: Sequence[str]) -> Self:
        return cls("E1019", f"no storage option `{name}`", hint=candidates_hint(name, known, "options"))

    @classmethod
    def bad_storage_options(cls, service: str, why: str, where: str) -> Self:
        return cls("E1027", f"the options for {service} cannot be used: {why}", where=where, hint="check their values")

    @classmethod
    def bad_clause(cls, why: str, hint: Hint) -> Self:
        return cls("E1015", why, hint=hint)

    @classmethod
    def bad_property(cls, name: str, value: str, expected: str | Action) -> Self:
        hint = f"expected {expected}" if isinstance(expected, str) else expected
        return cls("E1016", f"table property {name}={value!r} is not valid", hint=hint)

    @classmethod
    def result_consumed(cls, what: str) -> Self:
        return cls(
            "E1401",
            f"the rows of this result are gone: {what}",
            hint="run the query again",
            actions=[Action("keep_rows", also=True)],
        )

    @classmethod
    def not_scalar(cls, rows: str, columns: int) -> Self:
        return cls(
            "E1403",
            f"the result is not one value: it has {rows} and {columns} column{'' if columns == 1 else 's'}",
            hint="select one column and one row",
            actions=[Action("read_dicts")],
        )

    @classmethod
    def same_names(cls, names: Sequence[str], what: str) -> Self:
        return cls(
            "E1404",
            f"several columns of the result have the same name, which {what} cannot hold: {list_some(names)}",
            hint="give them names of their own with AS",
            actions=[Action("read_without_names")],
        )

    @classmethod
    def no_python_value(cls, kind: str, why: str) -> Self:
        return cls(
            "E1405",
            f"a value of type {kind} has no Python counterpart: {why}",
            actions=[Action("read_arrow"), Action("cast_to_text")],
        )

    # -- online tables ---------------------------------------------------------------------------------------------

    @classmethod
    def missing_key_columns(cls, missing: Sequence[str], key: Sequence[str], where: str | None = None) -> Self:
        return cls(
            "E1703",
            f"the keys lack {list_some(missing)}",
            where=where or None,
            hint=f"a key is made of {list_some(key)}: give a value for each",
        )

    @classmethod
    def duplicate_keys(cls, count: int, example: str, where: str, *, ordered: str | None = None) -> Self:
        tie = f", and the rows have the same `{ordered}`" if ordered else ""
        rows = "1 key occurs" if count == 1 else f"{count:,} keys occur"
        return cls(
            "E1704",
            f"{rows} more than once, such as {example}{tie}: an online table has one row for each key",
            where=where,
            hint="nothing was changed; make the key unique (a view with GROUP BY)",
            actions=[Action("order_rows")],
        )

    @classmethod
    def null_keys(cls, columns: Sequence[str], where: str) -> Self:
        return cls(
            "E1705",
            f"a key is null ({list_some(columns)}): nobody could ask for such a row",
            where=where,
            hint="nothing was changed; leave such rows out: serve a view with WHERE … IS NOT NULL",
        )

    @classmethod
    def null_order(cls, column: str, where: str) -> Self:
        return cls(
            "E1706",
            f"`{column}` is null in a row whose place it decides",
            where=where,
            hint="nothing was changed; leave such rows out: serve a view with WHERE … IS NOT NULL",
        )

    @classmethod
    def bad_order(cls, column: str, kind: str, where: str | None = None) -> Self:
        return cls(
            "E1707",
            f"rows cannot be put in order by `{column}` of type {kind}",
            where=where,
            hint="name a column of whole numbers, floats, dates or timestamps",
        )

    @classmethod
    def answer_too_large(cls, column: str, where: str | None = None) -> Self:
        return cls(
            "E1708",
            f"the values of `{column}` are more than 2 GiB in one answer",
            where=where,
            hint="ask for fewer keys at a time",
        )
