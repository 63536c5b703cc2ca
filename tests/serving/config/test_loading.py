"""Configurations that are right: files, variables, defaults, and what is never shown."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.base import settings
from headwater.base.config.document import parse_value
from headwater.base.errors import ConfigError, HeadwaterError, NotFoundError, StorageError
from headwater.serving import config as package
from headwater.serving.config import (
    Config,
    LimitsConfig,
    LocalSource,
    ServerConfig,
    SourceConfig,
    TableConfig,
    TokenConfig,
)
from headwater.serving.config.schema import schema_text

UPDATE = os.environ.get("HEADWATER_UPDATE_GOLDEN") == "1"
SCHEMA = Path(package.__file__).with_name("schema.json")

MURR = """\
server:
  host: localhost
  port: 8080
  data_dir: /var/lib/murr

tables:
  user_features:
    source:
      s3:
        bucket: my-bucket
        prefix: features/
        region: us-east-1
        endpoint: http://localhost:9000  # optional, for MinIO/LocalStack
    poll_interval: 5m  # default: 1m
    parts: 8           # default: 8
    key: [user_id]
    columns:
      user_id:
        dtype: utf8
        nullable: false
      click_rate:
        dtype: float32
        nullable: true  # default: true

  # Local filesystem source example
  local_features:
    source:
      local:
        path: /data/features
    key: [doc_id]
    columns: {}  # empty columns = skip schema validation
"""

FULL = f"""\
server:
  host: 0.0.0.0
  port: ${{PORT:-9000}}
  data_dir: data
  workers: 2
  tokens:
    - name: ranker
      hash: sha256:{hashlib.sha256(b"t").hexdigest()}
      scopes: [read, "write:clicks"]
  tls: {{cert: tls/cert.pem, key: tls/key.pem, key_password: "${{PASSWORD}}"}}
  limits: {{max_keys: 10, max_body_bytes: 1 MiB, request_timeout_s: 2.5}}
tables:
  sales.spend:
    source: {{lake: {{location: ../lake, table: spend, storage_options: {{AWS_REGION: eu-west-1}}}}}}
    freshness: 90s
  clicks:
    source: push
    key: [user, day]
    ttl: 30 days
    event_time: at
    required: false
    columns:
      user: {{dtype: uint64}}
      day: {{dtype: date}}
      at: {{dtype: "timestamp(us,UTC)"}}
      score: {{dtype: "decimal(10,2)", nullable: false}}
      embedding: {{dtype: list<float32>}}
"""


def load(text: str, **environ: str) -> Config:
    return Config.parse(text, name="serve.yaml", folder="/etc/headwater", environ=environ)


def test_murrs_own_file() -> None:
    config = load(MURR)
    server, users, local = config.server, config.tables["user_features"], config.tables["local_features"]
    assert (server.host, server.port, server.data_dir) == ("localhost", 8080, Path("/var/lib/murr"))
    assert users.source.kind == "s3" and users.source.s3 is not None
    assert users.source.s3.location == "s3://my-bucket/features"
    assert users.source.s3.options == {"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": "http://localhost:9000"}
    assert (users.poll_interval, users.parts, users.key) == (timedelta(minutes=5), 8, ["user_id"])
    assert users.declared == pa.schema([pa.field("user_id", pa.string(), False), ("click_rate", pa.float32())])
    assert local.source.kind == "local" and local.source.folders is not None
    assert local.source.folders.location == "/data/features"
    assert (local.poll_interval, local.parts, local.columns, local.declared) == (timedelta(minutes=1), 8, {}, None)
    assert local.required


def test_everything_that_can_be_said() -> None:
    config = load(FULL, PASSWORD="hunter2")
    server, spend, clicks = config.server, config.tables["sales.spend"], config.tables["clicks"]
    assert (server.port, server.workers, server.data_dir) == (9000, 2, Path("/etc/headwater/data"))
    assert server.tokens[0].scopes == ["read", "write:clicks"]
    assert server.tls is not None and server.tls.key_password is not None
    assert server.tls.cert == Path("/etc/headwater/tls/cert.pem")
    assert server.tls.key_password.get_secret_value() == "hunter2"
    assert server.limits == LimitsConfig(max_keys=10, max_body_bytes=1 << 20, request_timeout_s=2.5)
    assert spend.source.lake is not None
    assert (spend.source.lake.location, spend.source.lake.table) == ("/etc/lake", "spend")
    assert spend.source.lake.options == {"AWS_REGION": "eu-west-1"}
    assert spend.freshness == timedelta(seconds=90)
    assert clicks.source.kind == "push" and not clicks.required and clicks.ttl == timedelta(days=30)
    assert clicks.declared is not None
    assert clicks.declared.names == ["user", "day", "at", "score", "embedding"]
    assert [f.nullable for f in clicks.declared] == [False, False, True, False, True]
    assert clicks.declared.field("embedding").type == pa.list_(pa.float32())


def test_the_defaults() -> None:
    config = load("")
    assert config == Config() == load("server: {}\ntables: {}")
    server = config.server
    assert (server.host, server.port, server.workers, server.tokens, server.tls) == ("127.0.0.1", 8080, 1, [], None)
    limits = server.limits
    assert (limits.max_keys, limits.max_body_bytes, limits.max_header_bytes) == (100_000, 64 << 20, 32 << 10)
    assert (limits.max_concurrency, limits.request_timeout_s, limits.max_wait_s) == (1024, 30, 30)


def test_the_default_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    assert ServerConfig().data_dir == Path("/somewhere/headwater/serve")


def test_python_may_write_one() -> None:
    source, hour = SourceConfig(local=LocalSource(path=Path("x"))), timedelta(hours=1)
    table = TableConfig(source=source, key=["id"], ttl=hour, event_time="at")
    config = Config(server=ServerConfig(port=0, data_dir=Path("d")), tables={"t": table})
    assert config.tables["t"].ttl == timedelta(hours=1)
    assert config.server.data_dir == Path("d")
    with pytest.raises(ValueError, match="frozen"):
        config.server.port = 1


DTYPES = (
    *("utf8", "binary", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "date", "timestamp", "timestamp(ms)", "timestamp(us,UTC)"),
    *("decimal(38,10)", "list<float32>", "list<uint8>", "list<float16>"),
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_dtype(dtype: str) -> None:
    config = load(
        f"tables: {{t: {{source: push, key: [id], columns: {{id: {{dtype: int64}}, v: {{dtype: '{dtype}'}}}}}}}}"
    )
    assert isinstance(config.tables["t"].columns["v"].arrow, pa.DataType)


# -- variables ---------------------------------------------------------------------------------------------------------


def test_references() -> None:
    text = 'server: {host: "${HOST}", port: "${PORT}", workers: "${N:-3}", limits: {max_wait_s: "${W}"}}'
    server = load(text, HOST="::1", PORT="0x50", W="1e1", N="").server
    assert (server.host, server.port, server.workers, server.limits.max_wait_s) == ("::1", 80, 3, 10.0)


def test_references_stay_strings_where_strings_are_wanted() -> None:
    assert load("server: {host: '${HOST}'}", HOST="12").server.host == "12"
    assert load("server: {host: '${A}-${B:-x}-$${C}'}", A="1").server.host == "1-x-${C}"
    assert load("server: {host: '${HOST}'}", HOST="[a, {b: c}]").server.host == "[a, {b: c}]"


def test_overrides() -> None:
    config = load(
        MURR,
        HEADWATER_SERVE__SERVER__PORT="9000",
        HEADWATER_SERVE__SERVER__HOST="12",
        HEADWATER_SERVE__SERVER__LIMITS__MAX_BODY_BYTES="1 KiB",
        HEADWATER_SERVE__SERVER__TOKENS=f"[{{name: ci, hash: 'sha256:{'0' * 64}'}}]",
        HEADWATER_SERVE__SERVER__TOKENS__0__NAME="cd",
        HEADWATER_SERVE__tables__user_features__poll_interval="10s",
        HEADWATER_SERVE__TABLES__USER_FEATURES__COLUMNS__CLICK_RATE__DTYPE="float64",
        HEADWATER_SERVE__TABLES__LOCAL_FEATURES__SOURCE__LOCAL__PATH="/other",
        HEADWATER_OTHER="ignored",
    )
    assert (config.server.port, config.server.host, config.server.limits.max_body_bytes) == (9000, "12", 1024)
    assert config.server.tokens == [TokenConfig(name="cd", hash="sha256:" + "0" * 64, scopes=["read"])]
    users, local = config.tables["user_features"], config.tables["local_features"]
    assert users.poll_interval == timedelta(seconds=10) and users.columns["click_rate"].dtype == "float64"
    assert local.source.local is not None and local.source.local.path == Path("/other")


def test_overrides_reach_names_with_other_characters() -> None:
    text = "tables: {sales.spend: {source: {lake: {location: /lake}}}}"
    name = "HEADWATER_SERVE__TABLES__SALES_SPEND__"
    config = load(text, **{f"{name}FRESHNESS": "5m", f"{name}SOURCE__LAKE__STORAGE_OPTIONS__AWS_REGION": "eu"})
    spend = config.tables["sales.spend"]
    assert spend.freshness == timedelta(minutes=5)
    assert spend.source.lake is not None and spend.source.lake.options == {"AWS_REGION": "eu"}


def test_overrides_are_no_settings() -> None:
    found = settings.unknown({"HEADWATER_SERVE__SERVER__PORT": "1", "HEADWATER_SERV": "1"})
    assert [error.message for error in found] == ["no setting `HEADWATER_SERV`"]


# -- YAML --------------------------------------------------------------------------------------------------------------


def test_words_are_strings_as_in_yaml_1_2() -> None:
    assert parse_value("[no, on, yes, 12:30, 2024-01-01, 0o10, 0x1f, 1e3, .inf, ~, 'true', true]", "x") == [
        *("no", "on", "yes", "12:30", "2024-01-01", 8, 31, 1000.0, float("inf"), None, "true", True)
    ]


def test_anchors_and_merge_keys() -> None:
    text = """\
tables:
  a: &a
    source: {local: {path: /a}}
    key: [id]
    parts: 2
  b:
    <<: *a
    parts: 4
  c: {<<: [*a], source: {local: {path: /c}}}
"""
    tables = load(text).tables
    assert [tables[n].parts for n in "abc"] == [2, 4, 2]
    assert tables["c"].source.local == LocalSource(path=Path("/c"))
    with pytest.raises(ConfigError) as caught:
        load(text.replace("parts: 2", "prats: 2"))
    assert "serve.yaml:5:5: unknown key `prats`" in str(caught.value)


@given(st.text(max_size=200) | st.lists(st.sampled_from([*MURR.split("\n"), *FULL.split("\n")])).map("\n".join))
def test_any_text_is_a_configuration_or_a_typed_error(text: str) -> None:
    try:
        load(text)
    except HeadwaterError as e:
        assert e.hint and e.code.startswith("E17")


@given(st.integers(0, len(FULL)), st.integers(0, 40), st.text(max_size=5))
def test_any_damage_is_a_configuration_or_a_typed_error(at: int, length: int, instead: str) -> None:
    try:
        load(FULL[:at] + instead + FULL[at + length :], PASSWORD="hunter2")
    except ConfigError as e:
        assert "hunter2" not in str(e) and e.__cause__ is None


@pytest.mark.long
def test_depth_is_bounded() -> None:
    for text in ("[" * 100_000, "a: " + "{a: " * 50_000, "- " * 50_000):
        with pytest.raises(ConfigError):
            load(text)


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text("server: {data_dir: data}\ntables: {t: {source: {local: {path: ../in}}, key: [id]}}")
    config = Config.load(file, {})
    assert config.server.data_dir == tmp_path / "data"
    assert config.tables["t"].source.local == LocalSource(path=tmp_path.parent / "in")
    file.write_text("server: {prot: 1}")
    with pytest.raises(ConfigError) as caught:
        Config.load(str(file))
    assert caught.value.where == f"{file}:1:10"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        Config.load(tmp_path / "nowhere.yaml")
    with pytest.raises(StorageError):
        Config.load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"server: {host: caf\xe9}")
    with pytest.raises(ConfigError, match="UTF-8"):
        Config.load(tmp_path / "latin.yaml")


# -- secrets -----------------------------------------------------------------------------------------------------------


def test_secrets_are_not_shown() -> None:
    text = """\
server:
  tokens: [{name: ci, hash: "sha256:HASH"}]
  tls: {cert: c, key: k, key_password: hunter2}
tables:
  a: {source: {s3: {bucket: bkt, access_key_id: AKIA, secret_access_key: hunter3, session_token: hunter4}}, key: [id]}
  b: {source: {lake: {location: /l, storage_options: {AWS_SECRET_ACCESS_KEY: hunter5}}}}
""".replace("HASH", "ab" * 32)
    config = load(text)
    shown = f"{config!r} {config} {config.server.tokens} {config.tables} {config.model_dump_json()}"
    assert not any(secret in shown for secret in ("hunter2", "hunter3", "hunter4", "hunter5"))
    assert "ab" * 32 not in f"{config!r} {config}"
    source = config.tables["a"].source.s3
    assert source is not None
    assert source.options["AWS_SECRET_ACCESS_KEY"] == "hunter3" and source.options["AWS_SESSION_TOKEN"] == "hunter4"


def test_pydantic_shows_no_values() -> None:
    with pytest.raises(ValueError, match="TokenConfig") as caught:
        TokenConfig(name="ci", hash="my-secret", scopes=["read"])
    assert "my-secret" not in str(caught.value)


# -- lakes -------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_online_tables_of_a_lake(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("spend", [{"id": 1, "total": 2.5}])
    for name in ("features", "sales.totals"):
        lake.online(name, "spend", key="id")
    config = Config.of_lake(tmp_path, server=ServerConfig(port=0))
    assert sorted(config.tables) == ["features", "sales.totals"] and config.server.port == 0
    source = config.tables["features"].source
    assert source.kind == "lake" and source.lake is not None and source.lake.location == str(tmp_path)
    assert "hunter" not in repr(Config.of_lake(tmp_path, {"AWS_SECRET_ACCESS_KEY": "hunter"}))


def test_a_lake_without_online_tables(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path / "lake")
    lake.write("orders", [{"id": 1}])
    assert Config.of_lake(tmp_path / "lake").tables == {}
    with pytest.raises(NotFoundError):
        Config.of_lake(tmp_path / "nowhere")


# -- the schema --------------------------------------------------------------------------------------------------------


def test_the_schema_is_current() -> None:
    if UPDATE:
        SCHEMA.write_text(schema_text())
    assert SCHEMA.read_text() == schema_text()


@pytest.mark.parametrize("text", [MURR, FULL], ids=["murr", "full"])
def test_the_schema_takes_what_is_right(text: str) -> None:
    _validator().validate(parse_value(text, "x"))


@pytest.mark.parametrize(
    "text",
    [
        "sever: {}",
        "server: {port: many}",
        "server: {workers: 0}",
        "server: {tokens: [{name: ci, hash: secret}]}",
        "tables: {t: {source: {s3: {bucket: b, region: 5}}}}",
        "tables: {t: {key: [id]}}",
        "tables: {t: {source: {local: {path: a}}, columns: {id: {nullable: true}}}}",
    ],
)
def test_the_schema_refuses_what_is_wrong(text: str) -> None:
    assert not _validator().is_valid(parse_value(text, "x"))


def _validator() -> Any:
    return jsonschema_rs.Draft202012Validator(json.loads(SCHEMA.read_text()))
