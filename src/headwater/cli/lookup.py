"""`headwater lookup`: the rows of some keys, from an online table, without a server."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from headwater.cli._lake import add_lake, open_lake
from headwater.cli._screen import Screen

if TYPE_CHECKING:
    import pyarrow as pa

SUMMARY = "look up rows of an online table by their keys"


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument("table", metavar="TABLE", help="the online table's name")
    parser.add_argument(
        "keys", metavar="KEY", nargs="*", help="a key; the values of a key of several columns with commas between"
    )
    parser.add_argument(
        "--key", metavar="VALUE", action="append", default=[], help="one value of a key of several columns, for each"
    )
    parser.add_argument("--columns", metavar="A,B", help="columns to show (default: all)")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.base.errors import InputError
    from headwater.cli._verbs import Exit

    with open_lake(arguments) as lake:
        version = lake.online(arguments.table).current
        names = version.key
        texts = _texts(arguments, len(names))
        if not texts:
            raise InputError.bad_argument("KEY", None, f"a value of {', '.join(names)}")
        kinds = [version.schema.field(name).type for name in names]
        columns = None if arguments.columns is None else [c for c in arguments.columns.split(",") if c]
        keys = {
            name: _parsed([text[place] for text in texts], kind, name)
            for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
        }
        batch = version.fetch(keys, columns).batch()
    found = batch.column("_found").to_pylist()
    shown = batch.select([name for name in batch.schema.names if name != "_found"])
    facts = {"table": arguments.table, "version": version.number, "frontier": str(version.frontier)}
    if screen.as_json:
        _print_json(screen, facts, names, texts, shown, found)
    else:
        _print_table(screen, facts, names, texts, shown, found)
    return Exit.OK


def _texts(arguments: argparse.Namespace, width: int) -> list[list[str]]:
    """The keys that were typed, each as the texts of its values."""
    from headwater.base.errors import InputError

    texts = [[key] if width == 1 else key.split(",") for key in arguments.keys]
    given = arguments.key
    if len(given) % width:
        raise InputError.bad_argument("--key", given, f"{width} values for each key")
    texts += [given[at : at + width] for at in range(0, len(given), width)]
    for text in texts:
        if len(text) != width:
            raise InputError.bad_argument("KEY", ",".join(text), f"{width} values with commas between")
    return texts


def _parsed(texts: list[str], kind: pa.DataType, name: str) -> pa.Array:
    """Texts as values of a column of the key."""
    import pyarrow as pa

    from headwater.base.errors import SchemaError

    try:
        if pa.types.is_binary(kind):
            return pa.array([text.encode() for text in texts], kind)
        if pa.types.is_decimal(kind) or not pa.types.is_integer(kind):
            return pa.array(texts, pa.string()).cast(kind)
        return pa.array([int(text) for text in texts], kind)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise SchemaError.bad_keys(name, str(kind), str(error).partition("\n")[0]) from None


def _print_json(
    screen: Screen, facts: dict[str, Any], names: tuple[str, ...], texts: list[list[str]], rows: Any, found: list[bool]
) -> None:
    from headwater.query.rendering.values import JSON, spell

    columns = {name: spell(column, JSON) for name, column in zip(rows.schema.names, rows.columns, strict=True)}
    listed = [
        {
            "key": dict(zip(names, text, strict=True)),
            "found": there,
            "row": {name: values[place] for name, values in columns.items()} if there else None,
        }
        for place, (text, there) in enumerate(zip(texts, found, strict=True))
    ]
    screen.document({**facts, "rows": listed})


def _print_table(
    screen: Screen, facts: dict[str, Any], names: tuple[str, ...], texts: list[list[str]], rows: Any, found: list[bool]
) -> None:
    from headwater.cli._listing import print_listing
    from headwater.query.rendering.values import TEXT, spell

    columns = [spell(column, TEXT) for column in rows.columns]
    lines = []
    for place, (text, there) in enumerate(zip(texts, found, strict=True)):
        values = ["" if column[place] is None else str(column[place]) for column in columns]
        lines.append((*text, *(values if there else ["-"] * len(values))))
    print_listing(screen, (*names, *rows.schema.names), lines, right=())
    missing = [",".join(text) for text, there in zip(texts, found, strict=True) if not there]
    if missing:
        screen.say(f"not there: {' '.join(missing)}")
    screen.say(f"{facts['table']} version {facts['version']}, {facts['frontier']}")
