"""The catalogue of bad input: each case is a typed error with a code and a hint, and leaves every byte as it was.

A case is a function ``case_<title>(lake)`` that prepares a lake and returns the call that must be refused. What the user
reads is kept in ``catalogue.txt``; ``HEADWATER_UPDATE_GOLDEN=1 pytest tests/errors`` rewrites the sections of the cases that run.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.lakehouse import Lake

GOLDEN = Path(__file__).with_name("catalogue.txt")
UPDATE = os.environ.get("HEADWATER_UPDATE_GOLDEN") == "1"
_HEAD = "# What a user reads when something is wrong. Written by: HEADWATER_UPDATE_GOLDEN=1 pytest tests/errors\n"

Attempt = Callable[[], Any]


def read_sections() -> dict[str, str]:
    if not GOLDEN.exists():
        return {}
    parts = re.split(r"^== (.+)$", GOLDEN.read_text(), flags=re.MULTILINE)[1:]
    return {title: body.strip("\n") for title, body in zip(parts[::2], parts[1::2], strict=True)}


def fingerprint(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def normalized(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "<tmp>")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", "<time>", text)
    text = "\n".join("".join(c for c in line if c.isprintable()).rstrip() for line in text.split("\n"))
    text = re.sub(r"(?<=\.py:)\d+", "<line>", text)
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:<port>", text)


class Catalogue:
    """Runs one case and compares what is said with the golden file."""

    def __init__(self, folder: Path, said: dict[str, str]) -> None:
        self.folder, self.said = folder, said

    def check(self, case: Callable[[Lake], Attempt]) -> HeadwaterError:
        title = case.__name__.removeprefix("case_").replace("_", " ")
        attempt = case(hw.connect(self.folder / "lake"))
        before = fingerprint(self.folder)
        with pytest.raises(HeadwaterError) as caught:
            attempt()
        error = caught.value
        assert re.fullmatch(r"E\d{4}", error.code)
        assert error.hint, "an error says what to do next"
        text = normalized(f"{type(error).__name__}\n{error}", self.folder)
        self.said[title] = text
        if not UPDATE:
            assert text == read_sections().get(title), f"catalogue.txt, == {title}"
        assert fingerprint(self.folder) == before, "the folder is as it was"
        return error


def _titles() -> set[str]:
    """The titles of all cases, whether they run now or not."""
    sources = (file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    return {name.replace("_", " ") for text in sources for name in re.findall(r"def case_(\w+)\(", text)}


@pytest.fixture(scope="session")
def _said() -> Iterator[dict[str, str]]:
    said: dict[str, str] = {}
    yield said
    if UPDATE:
        kept = {
            title: text for title, text in read_sections().items() if title in _titles()
        }  # of files that did not run
        sections = [f"== {title}\n{text}\n" for title, text in sorted({**kept, **said}.items())]
        GOLDEN.write_text("\n".join([_HEAD, *sections]))


@pytest.fixture
def catalogue(tmp_path: Path, _said: dict[str, str]) -> Catalogue:
    return Catalogue(tmp_path, _said)
