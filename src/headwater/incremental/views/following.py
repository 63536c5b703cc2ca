"""Following: refreshes one after the other, as changes come.

A refresh takes everything that has come since the last one, so batches grow with the load by themselves. Where
nothing has come, looking is a few requests to the log; it is done again after a pause that doubles, up to a limit.

Whoever is far behind may say how many changed rows a refresh is to take at most. The frontier that it then goes to is
found from the logs alone (`next_stop`): all tables advance by the same share of the versions by which they are ahead,
and the largest share whose changed rows are few enough is found by bisection. A single version of a table is never cut,
since a view reflects whole versions: if one has more rows, the refresh ends with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from headwater.base.errors import HeadwaterError, InputError
from headwater.base.frontier import Frontier
from headwater.base.storage import is_elsewhere
from headwater.derived.dependencies import reachable
from headwater.derived.environment import Environment
from headwater.derived.lookup import Lookup
from headwater.derived.reports import Refresh
from headwater.derived.sources import Sources, Unavailable
from headwater.incremental.views.words import WORDS
from headwater.lake import snapshot
from headwater.lake.partitions import decode_path
from headwater.lake.snapshot import Snapshot

__all__ = ["follow", "next_stop"]

_FIRST_SECONDS = 0.01

Ranges = Mapping[str, tuple[int, Snapshot]]
"""For each table below a view: the version that is reflected, and the newest one."""


def follow(
    refresh: Callable[[Frontier | None], Refresh],
    stop: Callable[[], Frontier | None],
    every_seconds: float,
    *,
    available_now: bool,
) -> Iterator[Refresh]:
    """The reports of refreshes that had something to do; without end, unless what is ``available_now`` is enough.

    ``stop`` says how far the next one goes; None is as far as it can.
    """
    if isinstance(every_seconds, bool) or not isinstance(every_seconds, int | float) or every_seconds <= 0:
        raise InputError.bad_argument("every_seconds", every_seconds, "a number of seconds above zero")
    return _reports(refresh, stop, float(every_seconds), available_now=available_now)


def _reports(
    refresh: Callable[[Frontier | None], Refresh],
    stop: Callable[[], Frontier | None],
    most: float,
    *,
    available_now: bool,
) -> Iterator[Refresh]:
    pause = min(_FIRST_SECONDS, most)
    while True:
        until = stop()
        done = refresh(until)
        if done.mode == "noop" and until is not None:
            done = refresh(None)  # nothing to do up to there, so it is no stop
        if done.mode != "noop":
            pause = min(_FIRST_SECONDS, most)
            yield done
            continue
        if available_now:
            return
        time.sleep(pause)
        pause = min(2 * pause, most)


def next_stop(view: str, environment: Environment, most_rows: int) -> Frontier | None:
    """The versions of tables to which a refresh may go so that at most so many of their rows have changed since.

    None where that is all there is, and where changes cannot be followed anyway: a view, or one that it reads, has not
    been built, or a table is another one than before, or its past is gone.
    """
    try:
        ahead = _ahead(view, Lookup(environment))
        most = max((now.version - have for have, now in ahead.values()), default=0)
        if most <= 1 or _changed_rows(view, ahead, _part(ahead, most, most)) <= most_rows:
            return None
        few, many = 0, most
        while many - few > 1:
            middle = (few + many) // 2
            if _changed_rows(view, ahead, _part(ahead, middle, most)) <= most_rows:
                few = middle
            else:
                many = middle
        at = _part(ahead, few, most)
        if not few or not _changed_rows(view, ahead, at):
            few, at = many, _part(ahead, many, most)  # the next version has too many rows by itself
        if few == most or not all(_is_there(base, ahead[name][1]) for name, base in at.items()):
            return None
    except (HeadwaterError, Unavailable):  # the refresh reports what is wrong, or does without the past
        return None
    return Frontier({name: base.version for name, base in at.items()})


def _is_there(base: Snapshot, newest: Snapshot) -> bool:
    """Whether all files of a version exist: a vacuum may have deleted those that the newest one has not."""
    paths = [decode_path(path) for path in base.files.keys() - newest.files.keys()]
    vectors = {f.deletion_vector.unique_id for f in newest.files.values() if f.deletion_vector is not None}
    own = [f.deletion_vector for f in base.files.values() if f.deletion_vector is not None]
    paths += [one.relative_path() for one in own if one.storage_type == "u" and one.unique_id not in vectors]
    return all(is_elsewhere(path) or base.storage.exists(path) for path in paths)


def _ahead(view: str, lookup: Lookup) -> Ranges:
    """How far the tables are ahead of a view and of all that it reads; nothing if their changes cannot be followed."""
    below = reachable(view, lookup.reads)
    readers = [found for name in (view, *below) if (found := lookup.artefact(name)) is not None]
    ahead: dict[str, tuple[int, Snapshot]] = {}
    for reader in readers:
        for name in set(reader.reads) - {one.name for one in readers}:
            now, known = lookup.snapshot(name), reader.frontier.identities.get(name)
            if now is None or known is None or known.id != now.table_id:
                return {}
            have = reader.frontier[name]
            ahead[name] = (min(have, ahead.get(name, (have, now))[0]), now)
    return {} if any(now.version < have for have, now in ahead.values()) else ahead


def _part(ahead: Ranges, steps: int, most: int) -> dict[str, Snapshot]:
    """The tables after so many of the steps in which they would all come to their newest versions."""
    return {
        name: snapshot.at_version(now.storage, have - (have - now.version) * steps // most)
        for name, (have, now) in ahead.items()
    }


def _changed_rows(view: str, ahead: Ranges, at: dict[str, Snapshot]) -> int:
    since = Frontier({name: have for name, (have, _) in ahead.items()})
    return sum(Sources(view, WORDS, (), since, at).changed_rows().values())
