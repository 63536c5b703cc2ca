"""Servers of tests as processes that never outlive their owner.

A shell beside the server waits for the end of a pipe that the owner holds, and then kills the server, by its process
id, however the owner ended. The server's folder goes with it.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

__all__ = ["free_ports", "last_line", "start_guarded", "stop_guarded"]

# $1: the data's folder, $2: files that the server insists on making elsewhere; the rest is the server.
_GUARD = """
folder=$1 others=$2
shift 2
exec 3<&0
"$@" 3<&- &
server=$!
{ cat <&3; kill -9 $server; rm -rf "$folder"; rmdir "${folder%/*}"; } >/dev/null 2>&1 &
wait $server
rm -f $others
"""


def start_guarded(
    command: Sequence[str], data: Path, *, others: Iterable[str] = (), environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a server in its folder, with its output in the file ``log`` there."""
    guarded = ["sh", "-c", _GUARD, "sh", str(data), " ".join(others), *command]
    with (data / "log").open("wb") as log:
        return subprocess.Popen(
            guarded,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=data,
            env=None if environment is None else dict(environment),
        )


def stop_guarded(process: subprocess.Popen[bytes]) -> None:
    """End a server, and return when it has ended."""
    assert process.stdin is not None
    # The guard takes the end of its input as the order to kill the server, and ends after it.
    with contextlib.suppress(OSError):
        process.stdin.close()
    process.wait()


def last_line(data: Path) -> str:
    """The last thing that a server of this folder said."""
    log = (data / "log").read_text(errors="replace").strip().splitlines()
    return log[-1] if log else "it said nothing"


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on; another process may take one before it is used."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
