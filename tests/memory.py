"""How much memory a piece of work takes at its peak, beside what the process has before."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["bounded_memory"]

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@contextmanager
def bounded_memory(most_mb: float) -> Iterator[None]:
    """Fail if the peak of the resident memory grows by more than this; where there is no /proc, that of all so far."""
    if _RESET.exists():
        _RESET.write_text("5")  # the peak is what is resident now
    before = _peak_mb()
    yield
    grown = _peak_mb() - before
    assert grown < most_mb, f"{grown:,.0f} MB more than before"


def _peak_mb() -> float:
    if not _STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = re.search(r"VmHWM:\s*(\d+) kB", _STATUS.read_text())
    assert found, "Linux says so"
    return int(found[1]) / 1024
