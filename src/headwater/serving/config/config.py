"""The whole configuration of a server, and the way from a file to it.

A file is read as a document (`document`), environment variables are put over it (`overrides`), and the models check the
result. All mistakes are reported at once, each with its line. What has been loaded does not change any more.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, SecretStr, ValidationError

from headwater.base.config.document import read_document
from headwater.base.config.fields import Model
from headwater.base.config.mistakes import mistakes_of, raised
from headwater.base.config.overrides import apply_overrides, resolve_scalars
from headwater.base.errors import ConfigError, NotFoundError, StorageError
from headwater.base.storage import open_storage
from headwater.lake.catalog import RECORDS
from headwater.serving.config.server import ServerConfig
from headwater.serving.config.tables import LakeSource, SourceConfig, TableConfig, TableName

__all__ = ["Config"]

_ONLINE = "online"
_PREFIX = "HEADWATER_SERVE__"


class Config(Model):
    """What a server is to serve, and how."""

    server: ServerConfig = Field(default_factory=ServerConfig)
    """The server itself."""
    tables: dict[TableName, TableConfig] = Field(default_factory=dict)
    """The tables that it serves, by name."""

    @classmethod
    def load(cls, path: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> Self:
        """Read a file, with the environment's overrides; ``environ`` stands for that of the process.

        Raises
        ------
        ConfigError
            the file, or a variable, has mistakes (E1720 to E1729)
        """
        name = os.fspath(path)
        try:
            text = Path(path).read_bytes().decode()
        except FileNotFoundError:
            raise NotFoundError.object(os.path.basename(name), os.path.dirname(name) or ".") from None
        except UnicodeDecodeError as e:
            raise ConfigError.syntax(f"byte {e.start} is not UTF-8", name) from None
        except OSError as e:
            raise StorageError.failed(name, e.strerror or str(e)) from e
        return cls.parse(text, name=name, folder=os.path.dirname(os.path.abspath(name)), environ=environ)

    @classmethod
    def parse(
        cls, text: str, *, name: str = "config", folder: str | None = None, environ: Mapping[str, str] | None = None
    ) -> Self:
        """The configuration in a text; relative paths begin at ``folder``."""
        given = os.environ if environ is None else environ
        document = read_document(text, name, given, begins="`server:` and `tables:`")
        apply_overrides(document, cls, given, _PREFIX)
        try:
            return cls.model_validate(resolve_scalars(document.value, cls), context={"folder": folder})
        except ValidationError as e:
            mistakes = mistakes_of(e, document, document.value, cls)
        raise raised(mistakes, name)

    @classmethod
    def of_lake(
        cls,
        location: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        *,
        server: ServerConfig | None = None,
    ) -> Self:
        """Serve all online tables that a lake has now."""
        root = open_storage(location, storage_options)
        if root.local_path("") is not None and not os.path.isdir(root.url):
            raise NotFoundError.folder(root.url)
        options = {name: SecretStr(value) for name, value in (storage_options or {}).items()}
        source = LakeSource(location=root.url, storage_options=options)
        tables: dict[str, Any] = {
            name: TableConfig(source=SourceConfig(lake=source)) for name in root.folders(f"{RECORDS}/{_ONLINE}")
        }
        return cls(server=server or ServerConfig(), tables=tables)
