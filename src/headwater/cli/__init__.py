"""cli: the command `headwater`. One file per verb; a verb is found by being in this folder.

Manners, the same for every verb: data goes to stdout and everything else to stderr; ``--json`` makes
stdout one JSON document, also when the verb fails; the exit code is 0 for ok, 1 for failed, 2 for a
usage error and 3 for stale; a failure is ``error[E…]: …`` and a ``hint:``, and only ``--debug`` shows a
traceback. Nothing heavy is imported before a verb runs, so that ``headwater --help`` stays instant.

To add a verb, add a file here, named like the verb, with ``SUMMARY``, ``configure(parser)`` and
``run(arguments, screen) -> int`` (see `_verbs.Verb`). Files that begin with ``_`` are not verbs.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    from headwater.cli._main import run

    return run(argv)
