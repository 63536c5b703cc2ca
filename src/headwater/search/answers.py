"""Answers that are remembered: the same question to the same rows is not answered twice.

An answer belongs to a reader's key: the table's version and the splits that it was answered from. So no answer is ever
dropped because something has changed: what has changed has another key. All indexes of a process share one store, which
has a limit in bytes (setting ``search_answers_bytes``; 0 remembers nothing): answers that were not asked for in the
longest time go first, and one that would take more than an eighth of it is not kept. What is kept are addresses and
figures, and never rows, which are read from the table each time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from headwater.base import settings

__all__ = ["forget_answers", "remembered"]

_T = TypeVar("_T")
_LARGEST = 8
_KEY_BYTES = 500
"""About what an entry takes beside its answer."""
_answers: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
_guard = threading.Lock()
_bytes = 0


def remembered(key: Hashable, answer: Callable[[], _T], size: Callable[[_T], int]) -> _T:
    """The answer to a question, from memory or as ``answer`` gives it; ``size`` says how many bytes it takes.

    Whoever is given one does not change it.
    """
    global _bytes
    most = settings.current().search_answers_bytes
    with _guard:
        if key in _answers and most:
            _answers.move_to_end(key)
            found: _T = _answers[key][0]
            return found
    made = answer()
    taken = size(made) + _KEY_BYTES
    if taken > most // _LARGEST:
        return made
    with _guard:
        if key not in _answers:
            _answers[key] = made, taken
            _bytes += taken
        while _bytes > most:
            _, (_, freed) = _answers.popitem(last=False)
            _bytes -= freed
    return made


def forget_answers() -> None:
    """Forget them all."""
    global _bytes
    with _guard:
        _answers.clear()
        _bytes = 0
