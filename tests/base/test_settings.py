"""Settings: typed, explained, overridable, few."""

from __future__ import annotations

import contextvars
import dataclasses
import io
import threading
from pathlib import Path

import pytest

from headwater.base import settings
from headwater.base.errors import InputError
from headwater.base.settings import Settings


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in dataclasses.fields(Settings):
        monkeypatch.delenv(f"HEADWATER_{field.name.upper()}", raising=False)


def test_there_are_few_and_each_has_a_sentence() -> None:
    fields = dataclasses.fields(Settings)
    assert len(fields) <= 25
    assert all(field.metadata["doc"] for field in fields)
    defaults = Settings()
    assert defaults.replace(**dataclasses.asdict(defaults)) == defaults


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("progress", " Lines ", "lines"),
        ("fsync", "off", False),
        ("fsync", "TRUE", True),
        ("commit_retries", "0", 0),
        ("commit_retries", "1_000", 1000),
        ("target_file_bytes", "64MiB", 64 << 20),
        ("target_file_bytes", "1.5 GiB", 3 << 29),
        ("target_file_bytes", "2MB", 2_000_000),
        ("target_file_bytes", "4k", 4096),
        ("memory_limit_bytes", "4096", 4096),
        ("spill_dir", "/tmp/spill", Path("/tmp/spill")),
        ("spill_dir", "", None),
    ],
)
def test_values_parse(monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: object) -> None:
    monkeypatch.setenv(f"HEADWATER_{name.upper()}", text)
    assert getattr(settings.current(), name) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("progress", "loud"),
        ("fsync", "maybe"),
        ("commit_retries", "-1"),
        ("commit_retries", "many"),
        ("checkpoint_interval", "0"),
        ("target_file_bytes", "12 parsecs"),
        ("target_file_bytes", "1"),
        ("parquet_compression", "rar"),
    ],
)
def test_bad_values_name_the_variable(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    variable = f"HEADWATER_{name.upper()}"
    monkeypatch.setenv(variable, text)
    with pytest.raises(InputError, match=variable) as caught:
        settings.current()
    assert caught.value.code == "E1007"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("expected ")


def test_overrides_nest_and_end() -> None:
    with settings.override(threads=3, fsync=False) as outer:
        assert (outer.threads, outer.fsync) == (3, False)
        with settings.override(threads="5"):
            assert (settings.current().threads, settings.current().fsync) == (5, False)
        assert settings.current().threads == 3
    assert settings.current() == Settings()


def test_bad_overrides_are_refused_before_the_block() -> None:
    with pytest.raises(InputError, match="did you mean `threads`") as caught, settings.override(thread=1):
        pytest.fail("the block must not run")
    assert caught.value.code == "E1008"
    for changes in ({"threads": -1}, {"threads": 1.5}, {"threads": True}, {"fsync": 2}, {"spill_dir": 3}):
        with pytest.raises(InputError, match="E1007"), settings.override(**changes):
            pytest.fail("the block must not run")


def test_an_override_is_of_its_context_only() -> None:
    seen = []
    with settings.override(threads=7):
        context = contextvars.copy_context()
        for target in (lambda: seen.append(settings.current().threads),):
            thread = threading.Thread(target=contextvars.Context().run, args=(target,))
            thread.start()
            thread.join()
            context.run(target)
    assert seen == [0, 7]


def test_explain_says_where_values_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_THREADS", "2")
    monkeypatch.setenv("HEADWATER_FSYNC", "no")
    with settings.override(fsync=True):
        told = {e.name: (e.value, e.source) for e in settings.explain()}
    assert told["threads"] == ("2", "HEADWATER_THREADS")
    assert told["fsync"] == ("True", "override")
    assert told["progress"] == ("auto", "default")


def test_secrets_are_never_shown() -> None:
    @dataclasses.dataclass
    class WithSecret:
        token: str = dataclasses.field(default="", metadata={"parse": str, "doc": "", "secret": True})

    (field,) = dataclasses.fields(WithSecret)
    assert settings._shown(field, "hunter2") == "***"
    assert settings._shown(field, "") == ""


def test_unknown_variables_are_listed_without_their_values() -> None:
    found = settings.unknown(
        {"HEADWATER_TREADS": "hunter2", "HEADWATER_FAULTS": "x", "PATH": "y", "HEADWATER_FSYNC": "1"}
    )
    assert [error.code for error in found] == ["E1008"]
    assert "did you mean `HEADWATER_THREADS`" in str(found[0])
    assert "hunter2" not in str(found[0])


def test_worker_threads_are_at_least_one() -> None:
    assert Settings().worker_threads >= 1
    assert Settings().replace(threads=3).worker_threads == 3


def test_color_follows_the_setting_then_no_color_then_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Settings().wants_color(Terminal())
    assert not Settings().wants_color(io.StringIO())
    assert Settings().replace(color="on").wants_color(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Settings().wants_color(Terminal())
    assert Settings().replace(color="on").wants_color(Terminal())
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert not Settings().wants_color(Terminal())


def test_the_repr_shows_every_value() -> None:
    assert "threads=0" in repr(Settings())
