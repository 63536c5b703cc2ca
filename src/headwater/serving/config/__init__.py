"""Configuration: which tables a server serves, from where, and to whom.

A YAML file in the format that Murr began with (server: host, port, data_dir; tables: source, poll_interval, parts, key,
columns), strict: what is not known is refused, with the line, the column and the nearest name. Environment variables
override and complete it, and nothing secret is ever printed.

>>> config = Config.parse('''
... server: {port: "${PORT:-8080}"}
... tables:
...   user_features:
...     source: {local: {path: /data/features}}
...     poll_interval: 5m
...     key: [user_id]
... ''', environ={"HEADWATER_SERVE__SERVER__WORKERS": "2"})
>>> config.server.port, config.server.workers, config.tables["user_features"].poll_interval
(8080, 2, datetime.timedelta(seconds=300))
"""

from headwater.serving.config.config import Config
from headwater.serving.config.server import LimitsConfig, ServerConfig, TlsConfig, TokenConfig
from headwater.serving.config.tables import (
    ColumnConfig,
    LakeSource,
    LocalSource,
    PushSource,
    S3Source,
    SourceConfig,
    TableConfig,
)

__all__ = [
    "ColumnConfig",
    "Config",
    "LakeSource",
    "LimitsConfig",
    "LocalSource",
    "PushSource",
    "S3Source",
    "ServerConfig",
    "SourceConfig",
    "TableConfig",
    "TlsConfig",
    "TokenConfig",
]
