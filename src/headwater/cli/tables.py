"""`headwater tables`: what a lake holds."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from headwater.cli._lake import add_lake, open_lake
from headwater.cli._screen import Screen

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

SUMMARY = "list the tables of a lake: version, rows, files, size"

_HEADINGS = ("name", "version", "rows", "files", "size", "last modified", "partitioned by")


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser, optional=True)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._listing import print_listing, time_text
    from headwater.cli._verbs import Exit
    from headwater.observe.format import human_bytes

    lake = open_lake(arguments.lake)
    facts = [_facts(lake, name) for name in lake.tables()]
    if screen.as_json:
        screen.document({"lake": lake.location, "tables": facts})
    else:
        rows = [
            (
                fact["name"],
                str(fact["version"]) if "error" not in fact else fact["error"],
                "" if fact["rows"] is None else f"{fact['rows']:,}",
                "" if fact["files"] is None else f"{fact['files']:,}",
                "" if fact["size_bytes"] is None else human_bytes(fact["size_bytes"]),
                "" if fact["last_modified"] is None else time_text(fact["last_modified"]),
                ", ".join(fact["partitioned_by"]),
            )
            for fact in facts
        ]
        print_listing(screen, _HEADINGS, rows, right=(1, 2, 3, 4))
        if not rows:
            screen.say(f"no tables in {lake.location}")
    return Exit.FAILED if any("error" in fact for fact in facts) else Exit.OK


def _facts(lake: Lake, name: str) -> dict[str, Any]:
    from headwater.base.errors import HeadwaterError

    try:
        detail = lake.table(name).detail()
    except HeadwaterError as error:  # one damaged table does not hide the others
        nothing = dict.fromkeys(("version", "rows", "files", "size_bytes", "last_modified"))
        return {"name": name, **nothing, "partitioned_by": [], "error": f"[{error.code}] {error.message}"}
    return {
        "name": name,
        "version": detail["version"],
        "rows": detail["num_rows"],
        "files": detail["num_files"],
        "size_bytes": detail["size_bytes"],
        "last_modified": detail["last_modified"].isoformat(timespec="milliseconds"),
        "partitioned_by": detail["partition_columns"],
    }
