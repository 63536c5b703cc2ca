"""Headwater on workers that do not have it: the package is shipped to them.

Tasks import Headwater. In a local session the workers run the driver's own Python, so there is nothing to do, and
nothing is asked. On a cluster, and on a Spark Connect server, whatever Python is configured there runs them. So before
the first task of such a session a small job asks some workers what they have (`probe`). Where the same Headwater is
installed, that is all. Where there is none, or another one, the package of this process is zipped and given to Spark
(``addArtifacts(pyfile=True)``), which puts it in front of what is installed, for this session.

The zip is ``headwater-<digest>.zip``; the digest is of the sources. It holds

    headwater.py       unpacks the folder `package` beside the zip, once per executor, and puts the package found
                       there in its own place
    package/headwater  the package, with the machine code of the kernels where it came with the wheel

It is unpacked because the package reads files of its own (the machine code, and the sources that name its cache).
Packages with machine code of their own (pyarrow, numba, …) are not shipped: where one is missing, the error names it.
Another minor version of Python is refused by Spark itself before anything runs.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from headwater.base.errors import SetupError
from headwater.spark import probe
from headwater.spark.failures import told
from headwater.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["package_zip", "with_package"]

_ASKED_TASKS = 4
_ready: WeakSet[SparkSession] = WeakSet()

_UNPACK = '''"""Stands for the package headwater until it is unpacked, once per executor, beside this zip."""

import os, shutil, sys, tempfile, zipfile

_zip = os.path.dirname(os.path.abspath(__file__))


def _unpacked():
    folder = _zip + ".d"
    if os.path.isdir(folder):
        return folder
    try:
        part = tempfile.mkdtemp(dir=os.path.dirname(_zip))
    except OSError:
        folder, part = None, tempfile.mkdtemp(prefix="headwater-")
    with zipfile.ZipFile(_zip) as file:
        file.extractall(part, [name for name in file.namelist() if name.startswith("package/")])
    if folder is None:
        return part
    try:
        os.rename(part, folder)
    except OSError:  # another worker was first
        shutil.rmtree(part, ignore_errors=True)
    return folder


sys.path.insert(0, os.path.join(_unpacked(), "package"))
del sys.modules["headwater"]
import headwater
'''


def with_package(session: SparkSession) -> None:
    """See to it that tasks of this session can import this Headwater.

    Raises
    ------
    SetupError
        E7007: workers lack packages that cannot be shipped; E7009: they have loaded another Headwater; E7010: another
        Python.
    """
    if session in _ready or _runs_here(session):
        return
    zipped = package_zip()
    if zipped is not None:
        _ship(session, zipped)
    _ready.add(session)


def _runs_here(session: SparkSession) -> bool:
    """Whether the workers run the Python of this process: a classic session on this machine."""
    if is_connect(session):
        return False
    master = session.sparkContext.master or ""
    return master.startswith("local") and not master.startswith("local-cluster")


def _ship(session: SparkSession, zipped: Path) -> None:
    if _have_it(_ask(session), zipped):
        return
    session.addArtifacts(str(zipped), pyfile=True)
    # Asked again: workers may have loaded another one already, and a task that fails later says less.
    workers = _ask(session)
    if not _have_it(workers, zipped):
        other = next((w["origin"] for w in workers if w["origin"] is not None), None)
        raise SetupError.executors_lack("headwater") if other is None else SetupError.executors_differ(other)


def _have_it(workers: list[dict[str, Any]], zipped: Path) -> bool:
    digest = zipped.stem.removeprefix("headwater-")
    if all(w["digest"] == digest or zipped.name in (w["origin"] or "") for w in workers):
        return True
    missing = sorted({name for worker in workers for name in worker["missing"]})
    if missing:
        raise SetupError.executors_lack(*missing)
    return False


def _ask(session: SparkSession) -> list[dict[str, Any]]:
    from pyspark import cloudpickle
    from pyspark.sql import functions as sf
    from pyspark.sql.types import StringType

    cloudpickle.register_pickle_by_value(probe)  # type: ignore[no-untyped-call]
    # Without Arrow, which the workers may lack.
    ask = sf.udf(probe.found_here, StringType(), useArrow=False)
    with told():
        rows = session.range(0, _ASKED_TASKS, 1, _ASKED_TASKS).select(ask("id").alias("found")).collect()
    return [json.loads(row["found"]) for row in rows]


@cache
def package_zip() -> Path | None:
    """The zip of the package that this process runs; None where it is not a folder."""
    package = Path(__file__).parents[1]
    if not package.is_dir():
        return None
    folder = tempfile.mkdtemp(prefix="headwater-package-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / f"headwater-{probe.digest_of(str(package))}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("headwater.py", _UNPACK)
        for place, folders, names in os.walk(package):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                source = Path(place) / name
                file.write(source, Path("package", "headwater") / source.relative_to(package))
    return path
