"""This machine lacks something."""

from __future__ import annotations

from typing import Self

from headwater.base.errors.action import Action
from headwater.base.errors.root import HeadwaterError

__all__ = ["SetupError"]


class SetupError(HeadwaterError):
    """This machine lacks something."""

    @classmethod
    def no_java(cls, found: str | None, minimum: int) -> Self:
        what = f"Java {found} is too old" if found else "Java was not found"
        return cls(
            "E7001",
            f"{what}: Spark needs Java {minimum} or newer",
            hint=f"install a JDK {minimum}+ (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME to one",
        )

    @classmethod
    def missing_package(cls, package: str, what: str, extra: str | None = None) -> Self:
        how = f"pip install 'headwater[{extra}]'" if extra else f"pip install {package}"
        return cls("E7002", f"{what} needs the package `{package}`", hint=how)

    @classmethod
    def executors_lack(cls, *packages: str) -> Self:
        names = ", ".join(packages)
        hint = (
            f"install {names} for the Python of the executors too, and set PYSPARK_PYTHON "
            "(spark.pyspark.python) to that "
            "Python; or ship an environment that holds headwater, numba and pyarrow: spark.archives=env.tar.gz#env"
        )
        quoted = ", ".join(f"`{package}`" for package in packages)
        return cls("E7007", f"the tasks of the Spark cluster cannot import {quoted}", hint=hint)

    @classmethod
    def executors_differ(cls, found: str) -> Self:
        return cls(
            "E7009",
            f"the tasks of the Spark cluster import another headwater, {found}, although this one was shipped to them",
            hint="install this version for the Python of the executors, or drop spark.python.daemon.module, "
            "which loads theirs",
        )

    @classmethod
    def executors_python(cls, workers: str, driver: str) -> Self:
        return cls(
            "E7010",
            f"the tasks of the Spark cluster run Python {workers}, and this process Python {driver}",
            hint=f"set PYSPARK_PYTHON (spark.pyspark.python) to a Python {driver} on the executors, or run "
            f"this with {workers}",
        )

    @classmethod
    def out_of_memory(cls, limit_bytes: int) -> Self:
        limit = f"{limit_bytes:,} bytes" if limit_bytes else "what this machine has"
        return cls(
            "E7005",
            f"the query needs more memory than it may use ({limit})",
            hint="raise HEADWATER_MEMORY_LIMIT_BYTES, give it a HEADWATER_SPILL_DIR, or read fewer rows",
        )

    @classmethod
    def kernel_failed(cls, name: str, why: str) -> Self:
        return cls(
            "E7008",
            f"kernel {name} was not compiled: {why}",
            hint="check that numba and llvmlite are those of this Python; `headwater doctor` checks memory and disk",
        )

    @classmethod
    def spark_failed(cls, why: str) -> Self:
        return cls("E7003", f"Spark did not start: {why}", hint="run `headwater doctor` to see what is missing")

    @classmethod
    def session_conf(cls, name: str, found: str, wanted: str) -> Self:
        return cls(
            "E7006",
            f"the Spark session has {name}={found}, so that it would answer otherwise than the other engines",
            actions=[Action("set_session_conf", setting=name, value=wanted)],
        )

    @classmethod
    def cannot_listen(cls, host: str, port: int, why: str) -> Self:
        return cls("E7011", f"cannot listen on {host}:{port}: {why}", hint="take another port, or end who has it")

    @classmethod
    def server_failed(cls, service: str, why: str) -> Self:
        return cls(
            "E7004", f"the {service} server did not come up: {why}", hint="check that loopback ports can be bound"
        )

    @classmethod
    def no_tool(cls, tool: str, what: str) -> Self:
        return cls(
            "E7012", f"{what} needs `{tool}`, which was not found", hint=f"install {tool}, and put it on the PATH"
        )

    @classmethod
    def tool_not_installed(cls, tool: str, why: str) -> Self:
        return cls("E7013", f"{tool} was not installed: {why}", hint="check that the package registry can be reached")
