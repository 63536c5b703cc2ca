"""The way of one row from a commit to a published view: how many source files of Headwater run, and how many requests S3 gets.

Both are measures of how much machinery a row meets. A file counts if a function of it is called, in any thread, between the
beginning of `append` and the end of `refresh`, in a process that has done both before. To compare two versions, run it with
``PYTHONPATH`` pointing to the sources of each; requests are counted where `headwater.testing.requests` is there.

    python benchmarks/row_way.py [--list]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from typing import Any

import headwater as hw
from headwater.lakehouse import Lake

QUERY = "SELECT amount, count(*) AS n FROM orders GROUP BY amount"


def prepared(lake: Lake) -> Any:
    """A view that has been refreshed from a change before."""
    orders = lake.write("orders", [{"id": n, "amount": n % 7} for n in range(100)])
    view = lake.view("spend", QUERY)
    view.refresh()
    orders.append([{"id": 1000, "amount": 3}])
    view.refresh()
    lake.close()
    return orders, view


def files_of_a_row() -> set[str]:
    """The source files that one row's way goes through."""
    root = os.path.dirname(hw.__file__)
    orders, view = prepared(hw.connect(tempfile.mkdtemp()))
    found: set[str] = set()

    def profile(frame: Any, event: str, _arg: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(root):
            found.add(os.path.relpath(name, root))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        orders.append([{"id": 1001, "amount": 4}])
        view.refresh()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def requests_of_a_row() -> dict[str, str]:
    """The requests of the append, of the refresh after it, and of one that has nothing to do."""
    from headwater.testing.requests import counted
    from headwater.testing.s3_server import serve_s3

    with serve_s3() as server, counted(server) as s3:
        lake = hw.connect(s3.url("lake"), storage_options=s3.options)
        orders, view = prepared(lake)
        steps = {
            "append": lambda: orders.append([{"id": 1001, "amount": 4}]),
            "refresh": view.refresh,
            "noop refresh": view.refresh,
        }
        seen = {}
        for name, step in steps.items():
            with s3.count() as requests:
                step()
            seen[name] = str(requests)
            lake.close()
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the files")
    arguments = parser.parse_args()
    files = files_of_a_row()
    print(f"files: {len(files)}")
    if arguments.list:
        print("\n".join(sorted(files)))
    try:
        for name, requests in requests_of_a_row().items():
            print(f"requests of {name}: {requests}")
    except ModuleNotFoundError:
        print("requests are not counted by this version")


if __name__ == "__main__":
    main()
