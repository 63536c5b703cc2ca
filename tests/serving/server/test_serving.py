"""`headwater serve` from end to end: a lake, a configuration, date folders, tokens that change, TLS."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.serving.server.running import Answer, RunningServer, running
from tests.waiting import wait_until

import headwater as hw
from headwater.cli import main
from headwater.serving.server.access import hash_token

JSON = "application/json"
SERVE = [sys.executable, "-m", "headwater.cli", "serve", "--json"]
Capture = pytest.CaptureFixture[str]


def orders(number: int) -> list[dict[str, Any]]:
    return [{"customer": f"c{n}", "amount": float(n)} for n in range(number)]


@pytest.mark.long
def test_a_lake_is_followed(tmp_path: Path) -> None:
    """A commit to a table reaches the answer by itself: through a view, and with its frontier."""
    with hw.connect(tmp_path / "lake") as lake:
        table = lake.write("orders", orders(3))
        lake.view("spend", "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer")
        lake.online("features", "spend", key="customer", refresh=True)
    with running([*SERVE, str(tmp_path / "lake"), "--port", "0", "--workers", "2"]) as server:
        first = server.fetch("features", ["c1"])
        assert first.json()["columns"]["total"] == [1.0]
        table.append([{"customer": "c1", "amount": 10.0}])
        body = json.dumps({"keys": ["c1"], "min_frontier": "orders@1"}).encode()
        found = server.ask("POST", "/v1/tables/features/fetch", body, content_type=JSON)
        assert found.status == 200 and found.json()["columns"]["total"] == [11.0]
        assert found.headers["x-frontier"] != first.headers["x-frontier"]
        with hw.connect(tmp_path / "lake") as lake:
            lake.online("plain", "orders", key="customer", order_by="amount", refresh=True)
        assert server.fetch("plain", ["c1"]).json()["columns"]["amount"] == [10.0]
        assert server.ask("GET", "/readyz").status == 200
        # What cannot be refreshed is reported, and served on as it was.
        with hw.connect(tmp_path / "lake") as lake:
            lake.online("once", "orders", key="customer")
        wait_until(lambda: "once" in server.ask("GET", "/readyz").json()["reasons"], "the problem")


@pytest.mark.long
def test_a_lake_is_left_alone_where_that_is_wanted(tmp_path: Path) -> None:
    with hw.connect(tmp_path / "lake") as lake:
        table = lake.write("orders", orders(3))
        online = lake.online("features", "orders", key="customer", refresh=True)
        with running([*SERVE, str(tmp_path / "lake"), "--port", "0", "--no-refresh"]) as server:
            assert len(server.children()) == 1, "no follower"
            table.append([{"customer": "new", "amount": 1.0}])
            assert server.fetch("features", ["new"]).json()["found"] == [False]
            online.refresh()
            wait_until(lambda: server.fetch("features", ["new"]).json()["found"] == [True], "the refresh of another")


def write_day(folder: Path, day: str, rows: pa.Table) -> None:
    (folder / day).mkdir(parents=True)
    parquet.write_table(rows, folder / day / "part_0000.parquet")
    (folder / day / "_SUCCESS").touch()


CONFIG = """
server:
  port: 0
  data_dir: data
  tokens: TOKENS
tables:
  daily:
    source: {local: {path: days}}
    poll_interval: 100ms
    parts: 2
    key: [id]
    columns:
      id: {dtype: int64, nullable: false}
      x: {dtype: float32}
  features:
    source: {lake: {location: lake}}
    poll_interval: 100ms
"""


def configured(folder: Path, tokens: list[dict[str, Any]]) -> Path:
    config = folder / "serve.yaml"
    config.write_text(CONFIG.replace("TOKENS", json.dumps(tokens)))
    return config


def days(*values: float) -> pa.Table:
    return pa.table({"id": list(range(len(values))), "x": pa.array(values, pa.float32())})


@pytest.mark.long
def test_a_configuration_is_served_and_read_again(tmp_path: Path) -> None:
    with hw.connect(tmp_path / "lake") as lake:
        table = lake.write("orders", orders(3))
        lake.online("features", "orders", key="customer", refresh=True)
    write_day(tmp_path / "days", "2024-01-01", days(1.0, 2.0))
    config = configured(tmp_path, [])
    with running([*SERVE, str(config)]) as server:
        wait_until(lambda: server.ask("GET", "/readyz").status == 200, "readiness")
        assert server.fetch("daily", [0, 1, 2]).json()["columns"]["x"] == [1.0, 2.0, None]
        write_day(tmp_path / "days", "2024-01-02", days(5.0))
        wait_until(lambda: server.fetch("daily", [0]).json()["columns"]["x"] == [5.0], "the next day")
        write_day(tmp_path / "days", "2024-01-03", pa.table({"id": ["x"], "x": ["y"]}))
        wait_until(lambda: "daily" in server.ask("GET", "/readyz").json()["reasons"], "the refusal of a bad day")
        assert server.fetch("daily", [0]).json()["columns"]["x"] == [5.0]
        assert b'headwater_table_error{table="daily"} 1.0' in server.ask("GET", "/metrics").body
        write_day(tmp_path / "days", "2024-01-04", days(7.0))
        wait_until(lambda: server.fetch("daily", [0]).json()["columns"]["x"] == [7.0], "a good day")
        wait_until(lambda: server.ask("GET", "/readyz").status == 200, "readiness")
        table.append([{"customer": "new", "amount": 9.0}])
        wait_until(lambda: server.fetch("features", ["new"]).json()["found"] == [True], "the lake's change")

        token = "a-token-of-some-length"
        configured(tmp_path, [{"name": "ci", "hash": hash_token(token), "scopes": ["read:daily"]}])
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.fetch("daily", [0]).status == 401, "the new tokens")
        wait_until(lambda: all(server.fetch("daily", [0]).status == 401 for _ in range(10)), "of all workers")
        assert server.fetch("daily", [0], authorization=f"Bearer {token}").status == 200
        assert server.fetch("features", ["c1"], authorization=f"Bearer {token}").status == 403
        config.write_text("server: {prot: 1}\n")
        server.process.send_signal(signal.SIGHUP)
        assert server.fetch("daily", [0], authorization=f"Bearer {token}").status == 200, "a bad file changes nothing"


@pytest.mark.long
def test_a_table_that_is_too_old_makes_the_server_unready(tmp_path: Path) -> None:
    write_day(tmp_path / "days", "2024-01-01", days(1.0))
    config = tmp_path / "serve.yaml"
    table = "{source: {local: {path: days}}, key: [id], freshness: FRESHNESS, required: REQUIRED}"
    for freshness, required, status in (("10ms", "true", 503), ("10ms", "false", 200), ("1h", "true", 200)):
        text = table.replace("FRESHNESS", freshness).replace("REQUIRED", required)
        config.write_text(f"server: {{port: 0, data_dir: data}}\ntables: {{daily: {text}}}\n")
        with running([*SERVE, str(config)]) as server:
            wait_until(lambda server=server: server.fetch("daily", [0]).status == 200, "the table")  # type: ignore[misc]
            found = server.ask("GET", "/readyz")
            assert found.status == status
            assert ("daily" in found.json()["reasons"]) == (status == 503)


def ask_by_tls(server: RunningServer, authority: Path, path: str) -> Answer:
    context = ssl.create_default_context(cafile=str(authority))
    context.check_hostname = False
    with server.wire() as wire:
        wire.socket = context.wrap_socket(wire.socket)
        return wire.ask("POST", path, b'{"keys": [1]}', content_type=JSON)


@pytest.mark.long
def test_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = subprocess.run(
        f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
        f"-keyout {key} -out {certificate}".split(),
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip("openssl cannot make a certificate here")
    config = tmp_path / "serve.yaml"
    config.write_text(
        f"server: {{port: 0, data_dir: data, tls: {{cert: {certificate}, key: {key}}}}}\n"
        "tables: {t: {source: push, key: [id], columns: {id: {dtype: int64}, x: {dtype: float32}}}}\n"
    )
    with running([*SERVE, str(config)]) as server:
        assert server.url.startswith("https://")
        for path in ("/v1/tables/t/fetch", "/v1/tables/%74/fetch"):
            found = ask_by_tls(server, certificate, path)
            assert found.status == 200 and found.json()["found"] == [False]
        with pytest.raises((ConnectionError, EOFError)), server.wire() as plain:
            plain.ask("GET", "/healthz")


# -- the command ---------------------------------------------------------------------------------------------------------


def test_a_token_is_hashed(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO("a-token-of-some-length\n"))
    assert main(["serve", "--hash-token"]) == 0
    assert capsys.readouterr().out == hash_token("a-token-of-some-length") + "\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("short\n"))
    assert main(["serve", "--hash-token"]) == 1
    said = capsys.readouterr()
    assert "short" not in said.err + said.out


def test_what_would_be_served_is_said(tmp_path: Path, capsys: Capture) -> None:
    config = configured(tmp_path, [])
    assert main(["serve", str(config), "--check", "--json", "--workers", "3"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["tables"] == ["daily", "features"] and about["workers"] == 3 and about["host"] == "127.0.0.1"
    assert main(["serve", str(config), "--check"]) == 0
    assert "tables: daily, features" in capsys.readouterr().out


def test_a_check_makes_nothing(tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "serve.yaml"
    config.write_text(
        "server: {data_dir: data}\n"
        "tables: {clicks: {source: push, key: [id], columns: {id: {dtype: int64}, n: {dtype: int64}}}}\n"
    )
    assert main(["serve", str(config), "--check"]) == 0
    assert "tables: clicks" in capsys.readouterr().out
    assert [one.name for one in tmp_path.iterdir()] == ["serve.yaml"]


@pytest.mark.parametrize(
    ("words", "code"),
    [([], "E1001"), (["nowhere"], "E1108"), ([".", "--host", "0.0.0.0"], "E8105"), ([".", "--workers", "0"], "E1001")],
)
def test_what_cannot_be_served(words: list[str], code: str, capsys: Capture) -> None:
    assert main(["serve", *words]) == 1
    assert f"error[{code}]" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n"])
def test_tls_that_cannot_be_spoken_is_an_error_and_starts_nothing(
    tmp_path: Path, content: str | None, capsys: Capture
) -> None:
    if content is not None:
        (tmp_path / "cert.pem").write_text(content)
        (tmp_path / "key.pem").write_text(content)
    config = tmp_path / "serve.yaml"
    config.write_text("server: {port: 0, data_dir: data, tls: {cert: cert.pem, key: key.pem}}\n")
    for words in (["--check"], []):
        assert main(["serve", str(config), *words]) == 1
        said = capsys.readouterr().err
        assert "error[E8108]" in said and "cert.pem" in said


def test_lookups_on_the_command_line(tmp_path: Path, capsys: Capture) -> None:
    place = str(tmp_path / "lake")
    with hw.connect(place) as lake:
        lake.write(
            "orders", [{"customer": "ada", "day": 1, "amount": 1.5}, {"customer": "bob", "day": 2, "amount": None}]
        )
        lake.online("features", "orders", key="customer", refresh=True)
        lake.online("pairs", "orders", key=["customer", "day"], refresh=True)
    assert main(["lookup", place, "features", "bob", "eve", "ada", "--columns", "amount"]) == 0
    out, err = capsys.readouterr()
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["customer", "amount"] and lines[2:] == [["bob"], ["eve", "-"], ["ada", "1.5"]]
    assert "not there: eve" in err and "orders@0" in err
    assert main(["lookup", place, "pairs", "ada,1", "--key", "bob", "--key", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["found"] for row in found["rows"]] == [True, True]
    assert found["rows"][0] == {"key": {"customer": "ada", "day": "1"}, "found": True, "row": {"amount": 1.5}}
    for words in (
        ["nothing", "x"],
        ["pairs", "ada"],
        ["pairs", "ada,x"],
        ["features"],
        ["features", "ada", "--columns", "z"],
    ):
        assert main(["lookup", place, *words]) == 1
        assert "hint:" in capsys.readouterr().err
