"""`headwater warm`: compile what is compiled at first use, now."""

from __future__ import annotations

import argparse
import time

from headwater.cli._screen import Screen

SUMMARY = "compile all kernels now, so that the first view does not wait for them"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=int, metavar="N", help="processes that compile (default: one per core)")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.cli._verbs import Exit
    from headwater.kernels.code_cache import cache_folder, shipped_code
    from headwater.kernels.warm import names, warm

    start = time.perf_counter()
    compiled = warm(jobs=arguments.jobs)
    total, seconds = len(names()), time.perf_counter() - start
    shipped = shipped_code()
    if screen.as_json:
        screen.document(
            {
                "kernels": total,
                "compiled": compiled,
                "seconds": round(seconds, 3),
                "cache": str(cache_folder()),
                "shipped": None if shipped is None else {"level": shipped[0], "folder": str(shipped[1])},
            }
        )
    elif compiled:
        screen.data(f"{len(compiled)} of {total} kernels compiled in {seconds:.0f} s, kept in {cache_folder()}")
    else:
        screen.data(f"all {total} kernels are there already")
    return Exit.OK
