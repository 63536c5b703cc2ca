"""Every mistake in ``mistakes.txt`` is refused, in exactly these words; ``HEADWATER_UPDATE_GOLDEN=1`` writes the words anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from headwater.base.errors import ConfigError
from headwater.serving.config import Config

CORPUS = Path(__file__).with_name("mistakes.txt")
UPDATE = os.environ.get("HEADWATER_UPDATE_GOLDEN") == "1"
SECRETS = ("my-secret-token-0123", "12345678", "hunter2", "abc-secret")


def sections() -> dict[str, tuple[str, str]]:
    parts = re.split(r"^== (.+)\n", CORPUS.read_text(), flags=re.MULTILINE)
    bodies = [body.partition("\n--\n") for body in parts[2::2]]
    return {t: (given, answer.strip("\n")) for t, (given, _, answer) in zip(parts[1::2], bodies, strict=True)}


CASES = sections()


def answer_to(given: str) -> str:
    lines = given.split("\n")
    environ = dict(line[2:].split("=", 1) for line in lines if line.startswith("$ "))
    text = "\n".join(line for line in lines if not line.startswith("$ ")).replace("\\x01", "\x01")
    with pytest.raises(ConfigError) as caught:
        Config.parse(text, name="serve.yaml", environ=environ)
    error = caught.value
    assert error.hint, "an error says what to do next"
    assert (error.__cause__ is None and error.__suppress_context__) or error.__context__ is None, (
        "pydantic shows values"
    )
    assert not any(secret in f"{error}{error!r}" for secret in SECRETS)
    return f"{type(error).__name__}\n{error}"


@pytest.mark.parametrize("title", CASES)
def test_refused(title: str) -> None:
    given, wanted = CASES[title]
    found = answer_to(given)
    if UPDATE:
        CASES[title] = (given, found)
        head = CORPUS.read_text().partition("\n== ")[0].rstrip("\n")
        parts = [f"== {name}\n{text}\n--\n{answer}\n" for name, (text, answer) in CASES.items()]
        CORPUS.write_text("\n".join([f"{head}\n", *parts]))
    else:
        assert found == wanted


def test_places_are_exact() -> None:
    """Line and column in an answer are those of the key or the value in the file."""
    for given, answer in CASES.values():
        if (found := re.search(r"where: serve\.yaml:(\d+):(\d+)$", answer, re.MULTILINE)) is None:
            continue
        lines = [line for line in given.split("\n") if not line.startswith("$ ")]
        line, column = int(found[1]), int(found[2])
        assert line <= len(lines) + 1
        if line <= len(lines):
            assert column <= len(lines[line - 1]) + 1
