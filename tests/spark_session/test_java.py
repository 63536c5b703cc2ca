"""Finding Java and reading its version, with scripts that answer like the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.base.errors import SetupError
from headwater.spark.java import check_java, parse_version
from headwater.spark.session import QUICK_START


def fake_java(folder: Path, answer: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('java version "1.8.0_392"\nJava(TM) SE Runtime Environment', ("1.8.0_392", 8)),
        ('openjdk version "11.0.22" 2024-01-16', ("11.0.22", 11)),
        ('openjdk version "17.0.15" 2025-04-15', ("17.0.15", 17)),
        ('openjdk version "21" 2023-09-19', ("21", 21)),
        ('openjdk version "24-ea" 2025-03-18', ("24-ea", 24)),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25.0.1+8-LTS"', ("25.0.1+8-LTS", 25)),
        ("command not found", None),
    ],
)
def test_versions(text: str, expected: tuple[str, int] | None) -> None:
    assert parse_version(text) == expected


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "home" / "bin", 'openjdk version "21.0.2"')
    fake_java(tmp_path / "path", 'openjdk version "17.0.1"')
    found = check_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": f"{tmp_path / 'path'}:/usr/bin:/bin"})
    assert (found.path, found.major) == (str(java), 21)


def test_without_java_home_the_path_counts(tmp_path: Path) -> None:
    fake_java(tmp_path, 'openjdk version "17.0.1"')
    assert check_java({"PATH": f"{tmp_path}:/usr/bin:/bin"}).major == 17


def test_old_java(tmp_path: Path) -> None:
    fake_java(tmp_path, 'java version "1.8.0_392"')
    with pytest.raises(SetupError, match=r"^error\[E7001\]: Java 1.8.0_392 is too old: Spark needs Java 17") as caught:
        check_java({"PATH": f"{tmp_path}:/bin"})
    assert caught.value.hint is not None
    assert "JAVA_HOME" in caught.value.hint


def test_no_java(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="Java was not found"):
        check_java({"PATH": str(tmp_path)})


def test_java_home_that_is_wrong_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=f"where: JAVA_HOME={tmp_path} has no bin/java"):
        check_java({"JAVA_HOME": str(tmp_path), "PATH": "/bin"})


def test_java_that_does_not_answer(tmp_path: Path) -> None:
    fake_java(tmp_path, "Segmentation fault")
    with pytest.raises(SetupError, match="does not answer"):
        check_java({"PATH": f"{tmp_path}:/bin"})


def test_options_for_speed_are_tried_and_left_out_where_java_refuses_them(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "  *Unknown*) echo 'Unrecognized VM option' >&2; exit 1;;\n"
        "  *Old*) echo 'OpenJDK 64-Bit Server VM warning: Option Old was deprecated' >&2;;\n"
        "esac\n"
        "echo 'openjdk version \"17.0.1\"' >&2\n"
    )
    java.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert check_java(environment, options=["-XX:+Good"]).options == ("-XX:+Good",)
    assert check_java(environment, options=["-XX:+Good", "-XX:+Unknown"]).options == ()
    assert check_java(environment, options=["-XX:+Old"]).options == ()
    assert check_java(environment).options == ()


@pytest.mark.spark
def test_this_java_takes_the_options_of_a_quick_start() -> None:
    assert check_java(options=QUICK_START).options == QUICK_START
