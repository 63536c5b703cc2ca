"""`headwater forget`: erase rows from a table and everything derived from it, with their past, and certify it."""

from __future__ import annotations

import argparse
import sys

from headwater.cli._lake import add_lake, open_lake
from headwater.cli._screen import Screen

SUMMARY = "erase rows by a key from a table, its past and everything derived, and certify it"


def configure(parser: argparse.ArgumentParser) -> None:
    add_lake(parser)
    parser.add_argument("table", metavar="TABLE", help="the table that has the rows")
    parser.add_argument("key", metavar="COLUMN=VALUE", nargs="+", help="which rows, for example customer_id=1234")
    parser.add_argument(
        "--also",
        metavar="TABLE:COLUMN=VALUE",
        action="append",
        default=[],
        help="a further table that has rows about the same",
    )
    parser.add_argument("--plan", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--allow-outside", action="store_true", help="leave out what lies elsewhere; the certificate names it"
    )


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.base.errors import InputError
    from headwater.cli._verbs import Exit

    also = {}
    for text in arguments.also:
        name, colon, key = text.partition(":")
        if not colon:
            raise InputError.bad_argument("--also", text, "TABLE:COLUMN=VALUE")
        also[name] = key
    given = (arguments.table, ", ".join(arguments.key))
    with open_lake(arguments) as lake:
        if not (arguments.plan or arguments.yes or sys.stdin.isatty()):
            raise InputError.not_confirmed("forget", "--yes", "--plan")
        if arguments.plan or not arguments.yes:
            plan = lake.plan_forget(*given, also=also, allow_outside=arguments.allow_outside)
            if arguments.plan:
                if screen.as_json:
                    screen.document({"lake": lake.location, **plan.as_dict()})
                else:
                    screen.data(str(plan))
                return Exit.FAILED if plan.refused else Exit.OK
            screen.say(str(plan))
            screen.say("This cannot be undone. Type `forget` to go on:")
            if input().strip() != "forget":
                screen.say("nothing was done")
                return Exit.FAILED
        with screen.waiting("forgetting"):
            found = lake.forget(*given, also=also, allow_outside=arguments.allow_outside)
    if screen.as_json:
        screen.document({"lake": lake.location, **found.as_dict()})
    else:
        screen.data(str(found))
    return Exit.OK if found.complete else Exit.FAILED
