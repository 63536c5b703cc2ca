"""Which Java would Spark start, and is it new enough?

Spark's launcher takes ``$JAVA_HOME/bin/java`` where JAVA_HOME is set and ``java`` from the PATH where it
is not. A missing or old Java makes it fail late, with a stack trace about class versions, so the same
``java`` is asked for its version first. The answer of ``java -version`` has had two shapes: ``1.8.0_392``
up to Java 8, and ``17.0.15``, ``21``, ``24-ea`` or ``25.0.1+8`` since.

A JVM that does not know one of its options does not start. So the options that are only there for speed are tried in
the same call, and left out where Java refuses them or warns about them.

>>> parse_version('openjdk version "1.8.0_392"')
('1.8.0_392', 8)
>>> parse_version('openjdk version "24-ea" 2025-03-18')
('24-ea', 24)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headwater.base.errors import SetupError

__all__ = ["MINIMUM", "Java", "check_java", "find_java", "parse_version"]

MINIMUM = 17
"""The oldest Java that Spark 4 runs on."""

_VERSION = re.compile(r'version "((?:1\.)?(\d+)[^"]*)"')


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that answered: where it is and which version it says it is."""

    path: str
    version: str
    major: int
    options: tuple[str, ...] = ()
    """Of the options that were tried, those that it takes: all or none."""


def parse_version(text: str) -> tuple[str, int] | None:
    """The full version and the major number in the output of ``java -version``, or None."""
    found = _VERSION.search(text)
    return (found[1], int(found[2])) if found else None


def find_java(environment: Mapping[str, str] | None = None) -> str | None:
    """The ``java`` that Spark's launcher would take, or None."""
    environment = os.environ if environment is None else environment
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return str(java) if os.access(java, os.X_OK) else None
    return shutil.which("java", path=environment.get("PATH", os.defpath))


def check_java(environment: Mapping[str, str] | None = None, *, options: Sequence[str] = ()) -> Java:
    """The Java that Spark would start, and whether it takes these options.

    Raises
    ------
    SetupError
        E7001 where there is none, it does not run, or it is too old.
    """
    environment = os.environ if environment is None else environment
    path = find_java(environment)
    if path is None:
        error = SetupError.no_java(None, MINIMUM)
        if "JAVA_HOME" in environment:
            error.where = f"JAVA_HOME={environment['JAVA_HOME']} has no bin/java"
        raise error
    taken = tuple(options)
    found, complained = _ask(path, taken, environment)
    if taken and (found is None or complained):
        taken = ()
        found, _ = _ask(path, taken, environment)
    if found is None:
        error = SetupError.no_java(None, MINIMUM)
        error.where = f"{path} does not answer `-version`"
        raise error
    version, major = found
    if major < MINIMUM:
        error = SetupError.no_java(version, MINIMUM)
        error.where = path
        raise error
    return Java(path, version, major, taken)


def _ask(path: str, options: tuple[str, ...], environment: Mapping[str, str]) -> tuple[tuple[str, int] | None, bool]:
    """What ``java -version`` says with these options, and whether it failed or warned."""
    command = [path, *options, "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(environment), check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None, True
    text = answer.stderr + answer.stdout
    return parse_version(text), answer.returncode != 0 or "warning" in text.lower()
