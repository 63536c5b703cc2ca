"""Code files: Python of a project, run to collect what it declares.

A file is run as a module of its own, with the project's folder on the path while it runs, so that files can share code.
Whatever it raises is an error that names the file and line; nothing of the lake is touched by reading it.
"""

from __future__ import annotations

import hashlib
import linecache
import sys
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headwater.base.errors import HeadwaterError, ProjectError
from headwater.pipeline.declarations import Declared, collected
from headwater.pipeline.view_file import read_text

__all__ = ["read_code"]


def read_code(path: Path, shown: str, root: Path) -> list[Declared]:
    """What a file declares."""
    text = read_text(path, shown)
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    module = types.ModuleType(f"headwater_project_{digest}.{path.stem}")
    module.__file__ = str(path)
    linecache.checkcache(str(path))  # the text of a function is its fingerprint, and the file may have been changed
    with _importable(root), collected() as found:
        try:
            exec(compile(text, str(path), "exec"), module.__dict__)  # noqa: S102  it is the user's own project
        except SyntaxError as error:
            raise ProjectError.code_failed(f"SyntaxError: {error.msg}", f"{shown}:{error.lineno}") from error
        except HeadwaterError as error:
            error.where = _place(error, path, shown) if error.where is None else error.where
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise ProjectError.code_failed(what, _place(error, path, shown)) from error
    return found


def _place(error: BaseException, path: Path, shown: str) -> str:
    """The line of the file that was running."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{shown}:{frames[-1].lineno}" if frames else shown


@contextmanager
def _importable(root: Path) -> Iterator[None]:
    """Let modules of the project be imported by its files, and forget them afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(root))
    try:
        yield
    finally:
        sys.path.remove(str(root))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(root):
                del sys.modules[name]
