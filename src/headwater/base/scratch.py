"""Where temporary folders are made: in the folder of the setting ``spill_dir``, which need not be there yet."""

from __future__ import annotations

from pathlib import Path

from headwater.base import settings
from headwater.base.errors import StorageError

__all__ = ["scratch_parent"]


def scratch_parent() -> Path | None:
    """The folder for temporary folders, for ``dir`` of `tempfile`; None is the system's own."""
    folder = settings.current().spill_dir
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError.failed(str(folder), f"the folder of `spill_dir` cannot be made: {error}") from error
    return folder
