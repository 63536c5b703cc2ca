"""Several artefacts at once: each is refreshed once, after those that it reads.
One that fails stops only its readers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from headwater.base import markup
from headwater.base.errors import HeadwaterError, NotFoundError
from headwater.base.kinds import ARTEFACT
from headwater.derived.cascade import Cascade
from headwater.derived.dependencies import upstream_first
from headwater.derived.environment import Environment
from headwater.derived.lookup import behind
from headwater.derived.reports import Refresh

__all__ = ["Refreshes", "known_names", "refresh_several"]


@dataclass(frozen=True)
class Refreshes:
    """What became of several refreshes.

    Parameters
    ----------
    done : list of Refresh
        the reports, in the order in which they were made
    failed : mapping of str to HeadwaterError
        artefacts that could not be refreshed, each with the reason
    skipped : mapping of str to tuple of str
        artefacts that were not tried, each with those of ``failed`` that it reads, directly or through others
    """

    done: list[Refresh] = field(default_factory=list)
    failed: dict[str, HeadwaterError] = field(default_factory=dict)
    skipped: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether all were refreshed."""
        return not self.failed and not self.skipped

    def __iter__(self) -> Iterator[Refresh]:
        return iter(self.done)

    def __len__(self) -> int:
        return len(self.done)

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = [
            (one.name, one.mode, f"{one.rows_in:,}", f"{one.rows_out:,}", one.after, one.reason) for one in self.done
        ]
        rows += [(name, "failed", "", "", "", str(error)) for name, error in self.failed.items()]
        rows += [(name, "skipped", "", "", "", f"reads {', '.join(why)}") for name, why in self.skipped.items()]
        return markup.listing("refreshed", ("name", "mode", "rows in", "rows out", "frontier", "why"), rows)

    def __str__(self) -> str:
        lines = [f"{one.name}: {one}" for one in self.done]
        lines += [f"{name}: failed: {error.message}" for name, error in self.failed.items()]
        lines += [f"{name}: skipped: {', '.join(why)} could not be refreshed" for name, why in self.skipped.items()]
        return "\n".join(lines)


def refresh_several(
    names: Sequence[str],
    environment: Environment,
    *,
    full: bool,
    cascade: bool,
    stopped: threading.Event | None = None,
) -> Refreshes:
    """Refresh some artefacts, or all where no name is given; ``full`` is about those that are named.

    Once it is ``stopped``, no further one is begun.
    """
    asked = known_names(names, environment) or sorted(environment.artefacts())
    run, found = Cascade(environment), Refreshes()
    order = run.order(asked) if cascade else upstream_first(asked, run.lookup.reads)
    for name in order if cascade else [name for name in order if name in asked]:
        if stopped is not None and stopped.is_set():
            break
        lost = [n for n in run.lookup.reads(name) or () if n in found.failed or n in found.skipped]
        if lost:
            why = {one for n in lost for one in found.skipped.get(n, (n,))}
            found.skipped[name] = tuple(sorted(why))
            continue
        try:
            if name in asked:
                done = run.refresh(run.opened(name), full=full)
            elif (only := run.upstream(name)) is not None:
                done = only
            else:
                continue  # it is where it should be
        except HeadwaterError as error:
            found.failed[name] = error
            continue
        left = () if cascade else behind(run.lookup.reads(name) or (), run.lookup)
        found.done.append(replace(done, behind=left))
    return found


def known_names(names: Sequence[str], environment: Environment) -> list[str]:
    """Names of artefacts as they are written in the lake, whatever their case."""
    known = sorted(environment.artefacts()) if names else []
    return [_known(name, known, environment) for name in names]


def _known(name: str, known: Sequence[str], environment: Environment) -> str:
    if name in known:
        return name
    found = environment.table(name).name
    if found not in known:
        raise NotFoundError.derived(name, ARTEFACT, known, environment.root.url)
    return found
