"""`headwater warm`: do now what would be done at first use."""

from __future__ import annotations

import argparse
import time

from headwater.cli._screen import Screen

SUMMARY = "compile all kernels now, so that the first view does not wait for them"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=int, metavar="N", help="processes that compile (default: one per core)")
    parser.add_argument(
        "--spark", action="store_true", help="also keep Spark's classes ready, so that sessions start sooner (190 MB)"
    )


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._verbs import Exit
    from headwater.kernels.code_cache import cache_folder, shipped_code
    from headwater.kernels.warm import names, warm

    start = time.perf_counter()
    compiled = warm(jobs=arguments.jobs)
    total, seconds = len(names()), time.perf_counter() - start
    shipped = shipped_code()
    found: dict[str, object] = {
        "kernels": total,
        "compiled": compiled,
        "seconds": round(seconds, 3),
        "cache": str(cache_folder()),
        "shipped": None if shipped is None else {"level": shipped[0], "folder": str(shipped[1])},
    }
    if not screen.as_json:
        if compiled:
            screen.data(f"{len(compiled)} of {total} kernels compiled in {seconds:.0f} s, kept in {cache_folder()}")
        else:
            screen.data(f"all {total} kernels are there already")
    if arguments.spark:
        found |= _archive(screen)
    if screen.as_json:
        screen.document(found)
    return Exit.OK


def _archive(screen: Screen) -> dict[str, object]:
    from headwater.cli._class_archive import make_archive

    start = time.perf_counter()
    file, made = make_archive()
    seconds, size = time.perf_counter() - start, file.stat().st_size
    if not screen.as_json:
        how = f"kept in {seconds:.0f} s" if made else "there already"
        screen.data(f"Spark's classes are {how}: {file}, {size / 1e6:.0f} MB")
    return {"archive": {"file": str(file), "made": made, "bytes": size}}
