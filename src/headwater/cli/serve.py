"""`headwater serve`: answer lookups over HTTP."""

from __future__ import annotations

import argparse
import os
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from headwater.cli._lake import project_above, project_at
from headwater.cli._screen import Screen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.derived.environment import Environment
    from headwater.serving.server.options import ServerOptions
    from headwater.serving.server.supervisor import Plan

SUMMARY = "serve the online tables of a lake, or those of a configuration, over HTTP"

_LOCAL_S = 1.0
_REMOTE_S = 5.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="CONFIG|LAKE",
        nargs="?",
        help="a YAML file, the folder or URL of a lake, or a project's folder",
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes that answer (default: 1, or the file's)")
    parser.add_argument("--host", metavar="HOST", help="where to listen (default: 127.0.0.1, or the file's)")
    parser.add_argument("--port", type=int, metavar="PORT", help="default: 8080, or the file's; 0 takes a free one")
    parser.add_argument("--flight-port", type=int, metavar="PORT", help="answer Arrow Flight as well, on this port")
    parser.add_argument("--profile", metavar="NAME", help="of a project: where it runs (default: what its file says)")
    parser.add_argument("--no-refresh", action="store_true", help="leave refreshing the lake's tables to others")
    parser.add_argument("--access-log", action="store_true", help="write a line for each request to stderr")
    parser.add_argument("--check", action="store_true", help="read the configuration and say what it means, no more")
    parser.add_argument(
        "--hash-token", action="store_true", help="read a token from stdin and print the hash for the configuration"
    )


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    from headwater.base.errors import InputError
    from headwater.base.packages import required
    from headwater.cli._verbs import Exit

    if arguments.hash_token:
        return _hash_token(screen)
    if arguments.source is None and project_above() is not None:
        arguments.source = "."
    if arguments.source is None:
        raise InputError.bad_argument("CONFIG|LAKE", None, "a YAML file, or a lake")
    for package in ("uvicorn", "starlette", "uvloop", "orjson", "pydantic", "yaml", "prometheus_client"):
        required(package, "headwater serve", "serve")
    plan = _plan(arguments)
    plan.options.check()
    if arguments.check:
        _print_plan(screen, plan)
        return Exit.OK
    return _serve(arguments, screen, plan)


def _hash_token(screen: Screen) -> int:
    from headwater.base.errors import InputError
    from headwater.cli._verbs import Exit
    from headwater.serving.server.access import hash_token

    token = sys.stdin.readline().strip()
    if len(token) < 16:
        raise InputError.bad_argument("the token", "*" * len(token), "at least 16 characters: openssl rand -hex 32")
    hashed = hash_token(token)
    if screen.as_json:
        screen.document({"hash": hashed})
    else:
        screen.data(hashed)
    return Exit.OK


def _serve(arguments: argparse.Namespace, screen: Screen, plan: Plan) -> int:
    from headwater.serving.server.supervisor import Supervisor

    _log_to_stderr()

    def ready(url: str) -> None:
        if screen.as_json:
            screen.document({"url": url, "pid": os.getpid(), "workers": plan.options.workers})
        else:
            screen.data(url)
            screen.say(f"serving {arguments.source} with {plan.options.workers} worker(s); Ctrl-C stops")

    return Supervisor(plan, reload=lambda: _plan(arguments), on_ready=ready).run()


def _log_to_stderr() -> None:
    import logging

    logging.basicConfig(format="%(asctime)s %(levelname)s [%(process)d] %(message)s", level=logging.INFO)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


# -- what is to be served ----------------------------------------------------------------------------------------------


def _plan(arguments: argparse.Namespace) -> Plan:
    """What the words of the command ask for; read again at SIGHUP."""
    from headwater.base.errors import NotFoundError

    source: str = arguments.source
    if "://" not in source and os.path.isfile(source):
        return _plan_of_file(arguments, source)
    project = project_at(source, getattr(arguments, "profile", None))
    if project is not None:
        return _plan_of_lake(arguments, project.location, project.storage_options)
    if "://" not in source and not os.path.isdir(source):
        raise NotFoundError.folder(source)
    return _plan_of_lake(arguments, source)


def _plan_of_file(arguments: argparse.Namespace, path: str) -> Plan:
    from headwater.serving.config import Config
    from headwater.serving.server.configured import options_of, plan_of

    config = Config.load(path)
    options = _with_arguments(options_of(config), arguments)
    return plan_of(config, _open_lake, options, refresh=not arguments.no_refresh)


def _plan_of_lake(
    arguments: argparse.Namespace, location: str, storage_options: Mapping[str, str] = MappingProxyType({})
) -> Plan:
    from headwater.serving.server.backing import LakeTables
    from headwater.serving.server.follower import LakePublisher
    from headwater.serving.server.options import ServerOptions
    from headwater.serving.server.supervisor import Plan

    def tables() -> LakeTables:
        from headwater.base.storage import open_storage

        return LakeTables(open_storage(location, dict(storage_options) or None))

    every_s = _REMOTE_S if "://" in location else _LOCAL_S
    publisher = LakePublisher("_lake", lambda: _open_lake(location, storage_options), every_s=every_s)
    options = _with_arguments(ServerOptions(), arguments)
    return Plan(options, tables, None if arguments.no_refresh else lambda: [publisher])


def _open_lake(location: str, storage_options: Mapping[str, str]) -> Environment:
    from headwater.lakehouse import connect

    return connect(location, dict(storage_options) or None).environment()


def _with_arguments(options: ServerOptions, arguments: argparse.Namespace) -> ServerOptions:
    from dataclasses import replace

    given: dict[str, Any] = {name: getattr(arguments, name) for name in ("workers", "host", "port", "flight_port")}
    given = {name: value for name, value in given.items() if value is not None}
    return replace(options, access_log=arguments.access_log, **given)


def _print_plan(screen: Screen, plan: Plan) -> None:
    options = plan.options
    backing = (plan.show_backing or plan.make_backing)()
    tables = sorted(backing.tables())
    backing.close()
    if screen.as_json:
        screen.document(
            {
                "host": options.host,
                "port": options.port,
                "workers": options.workers,
                "tokens": [token.name for token in options.tokens],
                "tls": options.tls is not None,
                "tables": tables,
            }
        )
        return
    screen.data(f"{options.scheme}://{options.host}:{options.port}, {options.workers} worker(s)")
    screen.data(f"tokens: {', '.join(token.name for token in options.tokens) or 'none'}")
    screen.data(f"tables: {', '.join(tables) or 'none'}")
