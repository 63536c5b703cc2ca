"""Tidying: what refreshes leave to be done in the background (`upkeep`): state saved, a checkpoint of the log, files
put together, old state deleted.

State is saved as soon as no refresh has ended for a moment: of refreshes that follow each other closely only the last
one's is.

The long part of putting files together is to read and write them. It is done from a snapshot, and holds nobody up. The
short part is a commit like a refresh's, alone in the view: it looks at what has happened since. Rows that were deleted
meanwhile are marked in the new files; where a file has gone, or new files were swept by another process as nobody's,
the work is given up, and the next refresh asks for it again. So a refresh never loses against it, and a process that
ends anywhere in it leaves a view that is right, with files that the next sweep finds.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial

from headwater.base import events, faults
from headwater.base.errors import ConflictError, NotFoundError
from headwater.base.storage import Storage
from headwater.derived import upkeep
from headwater.derived.environment import Environment
from headwater.incremental import spill
from headwater.incremental.layout import Layout
from headwater.incremental.views import packing_up
from headwater.incremental.views.attempting import ViewAttempt
from headwater.incremental.views.definition import Definition
from headwater.incremental.views.live import Live, live
from headwater.incremental.views.record import ViewRecord
from headwater.lake import transaction
from headwater.lake.snapshot import Snapshot
from headwater.lake.table import Table

__all__ = ["ask", "finish", "soon", "stop"]

_MOMENT = 0.02
_MOMENTS = 10


def ask(view: str, table: Table, environment: Environment, base: Snapshot) -> None:
    """Have a view tidied up in the background, if there is a reason to; ``base`` is its table now."""
    one = live(environment.root, view)
    if one.unchecked is not None or one.is_littered or packing_up.due(base):
        soon(view, table, environment)


def soon(view: str, table: Table, environment: Environment) -> None:
    """Have it tidied up when the refresh that asks is over."""
    one = live(environment.root, view)
    one.touched = time.monotonic()
    if one.is_asked_for:
        return
    one.is_asked_for = True
    what = f"the view `{view}` was not tidied up"
    upkeep.later(_key(view, environment), partial(_tidy, view, table, environment), what=what)


def stop(view: str, environment: Environment) -> None:
    """Return when nothing of the kind is done any more: the view is to be dropped."""
    upkeep.cancel(_key(view, environment))


def finish(root: Storage) -> None:
    """Return when nothing is done in the background for the views of a lake any more."""
    upkeep.finish(f"{root.url}\n")
    spill.background().submit(lambda: None).result()  # merges may write to the folders of views


def _key(view: str, environment: Environment) -> str:
    return f"{environment.root.url}\n{view}"


def _tidy(view: str, table: Table, environment: Environment) -> None:
    one = live(environment.root, view)
    _wait_for_a_moment(one)
    with one.guard:  # a refresh that asked, and took longer than that moment, is over then
        one.is_asked_for = False
    faults.point("view.upkeep.begin", view)
    with suppress(NotFoundError, ConflictError):  # it was dropped, or somebody else was quicker
        if _is_behind(one):
            with ViewAttempt(view, table, environment, one, last=True) as attempt:
                attempt.settle()
        if one.unchecked is not None:
            version, one.unchecked = one.unchecked, None
            transaction.write_checkpoint(table.storage, version)
        base = table.snapshot
        files = packing_up.due(base)
        rewritten = _rewritten(view, base, files) if files else None
        if files or one.is_littered:
            _finish(ViewAttempt(view, table, environment, one, last=True), rewritten)


def _is_behind(one: Live) -> bool:
    """Whether state waits to be saved."""
    return one.behind > 0 and not one.folder.remote


def _wait_for_a_moment(one: Live) -> None:
    """Wait until no refresh has ended for a moment; but not for ever, since other views wait, too."""
    for _ in range(_MOMENTS):
        left = one.touched + _MOMENT - time.monotonic()
        if left <= 0:
            return
        time.sleep(left)


def _finish(attempt: ViewAttempt, rewritten: packing_up.Rewritten | None) -> None:
    """The short part. What an error leaves is swept by the next refresh, which knows better what was committed."""
    begun = False
    try:
        with attempt:
            begun = True
            if attempt.record.state is None:  # there are no addresses to keep
                attempt.pack(packing_up.due(attempt.base))
            if rewritten is not None and not attempt.swap(rewritten):
                packing_up.discard(rewritten)
            attempt.sweep()
    finally:
        if rewritten is not None and not begun:
            packing_up.discard(rewritten)


def _rewritten(view: str, base: Snapshot, files: list[packing_up.AddFile]) -> packing_up.Rewritten | None:
    definition, record = Definition.of(base), ViewRecord.of(base)
    if definition is None or record.state is None or record.published != base.version:
        return None
    total = sum((f.num_records or 0) - f.num_deleted for f in files)
    with events.task(f"optimize {view}", total=max(total, 0) or None, unit="rows") as task:
        found = packing_up.rewrite(base, Layout(definition.schema), files, task)
    faults.point("view.pack.rewritten", base.where)
    return found
