"""The checks of `headwater doctor`. Each returns one finding, or raises a HeadwaterError, which is one."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Literal

from headwater.base import settings
from headwater.base.errors import HeadwaterError

__all__ = ["Finding", "examine"]

_GIB = 2**30
_NEEDED = ("duckdb", "numpy", "obstore", "prompt_toolkit", "pyarrow", "pyroaring", "rich", "sqlglot")
_FOR_SPARK = ("pyspark", "pandas")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. A warning does not fail the command."""

    check: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    hint: str | None = None


def examine(*, storage: str | None = None, debug: bool = False) -> Iterator[Finding]:
    """Run the checks one by one, cheap ones first; ``debug`` shows where a failing one broke."""
    guarded = partial(_run, debug=debug)
    yield guarded("python", _python)
    yield guarded("settings", _settings)
    packages = guarded("packages", _packages)
    yield packages
    java = guarded("java", _java)
    yield java
    yield guarded("memory", _memory)
    yield guarded("disk", _disk)
    if java.status == "fail":
        yield Finding("spark", "warn", "not tried: Java is needed first")
    elif packages.status != "ok":
        yield Finding("spark", "warn", "not tried: packages are missing")
    else:
        yield guarded("spark", _spark)
    yield guarded("lake", _lake)
    location = storage or os.environ.get("HEADWATER_TEST_S3")
    if location:
        yield guarded("storage", lambda: _storage(location))
    elif "AWS_ENDPOINT_URL" in os.environ:
        hint = "name a place to try: headwater doctor --storage s3://bucket/prefix"
        yield Finding("storage", "warn", "not tried: an endpoint is configured, but no bucket is named", hint)


def _run(check: str, function: Callable[[], Finding], *, debug: bool) -> Finding:
    try:
        return function()
    except HeadwaterError as error:
        if debug:
            traceback.print_exc()
        where = f" ({error.where})" if error.where else ""
        return Finding(check, "fail", f"[{error.code}] {error.message}{where}", error.on("cli").hint)
    except Exception as error:  # noqa: BLE001 (a check that breaks is a finding)
        if debug:
            traceback.print_exc()
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        return Finding(check, "fail", f"{type(error).__name__}: {first}", "run `headwater doctor --debug` to see where")


def _python() -> Finding:
    detail = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    # A tuple from text, because a checker takes a comparison with sys.version_info as settled by requires-python.
    if tuple(map(int, platform.python_version_tuple()[:2])) < (3, 11):
        return Finding("python", "fail", f"{detail} is too old", "install Python 3.11 or newer")
    return Finding("python", "ok", detail)


def _settings() -> Finding:
    changed = [f"{each.name}={each.value}" for each in settings.explain() if each.source != "default"]
    strays = settings.unknown()
    if strays:
        return Finding("settings", "warn", "; ".join(stray.message for stray in strays), strays[0].hint)
    return Finding("settings", "ok", ", ".join(changed) or "all at their defaults")


def _packages() -> Finding:
    found, missing = [], []
    for name in (*_NEEDED, *_FOR_SPARK):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if set(missing) & set(_NEEDED):
        return Finding("packages", "fail", f"missing: {', '.join(missing)}", "pip install 'headwater[spark]'")
    if missing:
        detail = f"Spark is not installed: missing {', '.join(missing)}"
        return Finding("packages", "warn", detail, "for Spark: pip install 'headwater[spark]'")
    return Finding("packages", "ok", ", ".join(found))


def _java() -> Finding:
    from headwater.spark.java import check_java

    java = check_java()
    return Finding("java", "ok", f"Java {java.version} at {java.path}")


def _memory() -> Finding:
    from headwater.spark.machine import cores, driver_memory_mb, memory_bytes

    total = memory_bytes()
    detail = f"{total / _GIB:.1f} GiB, {cores()} cores; a local Spark driver takes {driver_memory_mb(total)} MiB"
    if total < 3 * _GIB:
        return Finding("memory", "warn", detail, "Spark is tight below 4 GiB: pass a smaller spark.driver.memory")
    return Finding("memory", "ok", detail)


def _disk() -> Finding:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    detail = f"{free / _GIB:.1f} GiB free in {folder}"
    if free < 2 * _GIB:
        return Finding("disk", "warn", detail, "Spark spills there: free some space, or set TMPDIR to a larger disk")
    return Finding("disk", "ok", detail)


def _spark() -> Finding:
    from headwater.spark.session import active_session, has_delta, spark

    begin, mine = time.monotonic(), active_session() is None
    session = spark()
    try:
        rows = session.range(1000).filter("id % 2 = 0").count()
        if rows != 500:
            return Finding("spark", "fail", f"counted {rows} even numbers below 1000", "this installation is broken")
        delta = "with" if has_delta(session) else "without"
        seconds = time.monotonic() - begin
        return Finding(
            "spark",
            "ok",
            f"Spark {session.version} started and counted in {seconds:.1f} s, {delta} Delta's JVM classes",
        )
    finally:
        if mine:
            session.stop()


def _lake() -> Finding:
    import pyarrow as pa

    import headwater as hw

    rows = pa.table({"id": [1, 2, 3], "name": ["a", None, "ü"]})
    with tempfile.TemporaryDirectory(prefix="headwater-doctor-") as folder:
        begin = time.monotonic()
        lake = hw.connect(folder)
        lake.write("doctor", rows)
        back = lake.table("doctor").to_arrow()
        seconds = time.monotonic() - begin
    if back.sort_by("id").to_pylist() != rows.to_pylist():
        return Finding(
            "lake", "fail", "a Delta table came back with other rows than were written", "please report this"
        )
    return Finding("lake", "ok", f"wrote a Delta table and read it back in {1000 * seconds:.0f} ms")


def _storage(location: str, writers: int = 8) -> Finding:
    """Conditional puts are how a commit is decided, and some servers accept them and ignore the condition."""
    from headwater.base.storage import ObjectExistsError, open_storage

    storage = open_storage(location).child(f"headwater-doctor-{os.getpid()}-{time.time_ns()}")
    barrier = threading.Barrier(writers)

    def create(writer: int) -> bool:
        barrier.wait()
        try:
            storage.put_if_absent("race", b"%d" % writer)
        except ObjectExistsError:
            return False
        return True

    begin = time.monotonic()
    try:
        with ThreadPoolExecutor(writers) as pool:
            won = [writer for writer, first in enumerate(pool.map(create, range(writers))) if first]
        if len(won) != 1:
            detail = f"put-if-absent let {len(won)} of {writers} racing writers win"
            return Finding(
                "storage", "fail", detail, "a lake would lose commits here: use a server with conditional puts"
            )
        if storage.get("race") != b"%d" % won[0] or [entry.path for entry in storage.list()] != ["race"]:
            return Finding(
                "storage", "fail", "what was written is not what is read or listed", "use a consistent server"
            )
    finally:
        storage.delete("race")
    if list(storage.list()):
        return Finding("storage", "fail", "a deleted object is still listed", "use a consistent server")
    return Finding(
        "storage",
        "ok",
        f"{location}: one of {writers} racing writers won, list and delete work, {time.monotonic() - begin:.1f} s",
    )
