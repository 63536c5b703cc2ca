"""`headwater tables`: what a lake holds, tables and what is derived from them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from headwater.cli._lake import add_lake, open_lake
from headwater.cli._screen import Screen

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

SUMMARY = "list the tables of a lake and what is derived from them: version, rows, files, size"

_HEADINGS = ("name", "kind", "version", "rows", "files", "size", "last modified", "partitioned by")


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser, optional=True)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._listing import print_listing, time_text
    from headwater.cli._verbs import Exit
    from headwater.observe.format import human_bytes

    lake = open_lake(arguments)
    facts = [{"name": name, "kind": kind, **_facts(lake, name)} for name, kind in lake.catalog.kinds().items()]
    if screen.as_json:
        screen.document({"lake": lake.location, "tables": facts})
    else:
        rows = [
            (
                fact["name"],
                fact["kind"],
                str(fact["version"]) if "error" not in fact else fact["error"],
                "" if fact["rows"] is None else f"{fact['rows']:,}",
                "" if fact["files"] is None else f"{fact['files']:,}",
                "" if fact["size_bytes"] is None else human_bytes(fact["size_bytes"]),
                "" if fact["last_modified"] is None else time_text(fact["last_modified"]),
                ", ".join(fact["partitioned_by"]),
            )
            for fact in facts
        ]
        print_listing(screen, _HEADINGS, rows, right=(2, 3, 4, 5))
        if not rows:
            screen.say(f"no tables in {lake.location}")
    return Exit.FAILED if any("error" in fact for fact in facts) else Exit.OK


def _facts(lake: Lake, name: str) -> dict[str, Any]:
    from headwater.base.errors import HeadwaterError
    from headwater.lake.published import is_built

    nothing: dict[str, Any] = {
        **dict.fromkeys(("version", "rows", "files", "size_bytes", "last_modified")),
        "partitioned_by": [],
    }
    try:
        table = lake.table(name)
        if not table.exists():  # an artefact without a table
            (status,) = lake.status(name)
            return {**nothing, "version": status.version, "rows": status.rows}
        detail = table.detail()
        built = is_built(table.snapshot)
    except HeadwaterError as error:  # one damaged table does not hide the others
        return {**nothing, "error": f"[{error.code}] {error.message}"}
    return {
        "version": detail["version"],
        "rows": detail["num_rows"] if built else None,
        "files": detail["num_files"],
        "size_bytes": detail["size_bytes"],
        "last_modified": detail["last_modified"].isoformat(timespec="milliseconds"),
        "partitioned_by": detail["partition_columns"],
    }
