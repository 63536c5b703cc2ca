"""Named fault points: where tests make the world fail.

Code that writes calls ``point("lake.commit.before_publish", path)`` at each place where a crash or an
error would matter. With no hook installed this is one global read. ``headwater.testing`` installs
hooks that raise, delay or kill the process; production code never does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Hook", "installed", "point"]

Hook = Callable[[str, str], None]

_hook: Hook | None = None


def point(name: str, detail: str = "") -> None:
    """Tell the installed hook, if any, that execution reached ``name``."""
    if _hook is not None:
        _hook(name, detail)


@contextmanager
def installed(hook: Hook) -> Iterator[None]:
    """Install ``hook`` for the duration of the block; hooks do not nest."""
    global _hook
    assert _hook is None, "a fault hook is installed already"
    _hook = hook
    try:
        yield
    finally:
        _hook = None
