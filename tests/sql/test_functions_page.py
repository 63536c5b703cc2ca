"""docs/functions.md is what the catalogue says; HEADWATER_UPDATE_GOLDEN=1 writes it anew."""

from __future__ import annotations

import os
from pathlib import Path

from headwater.sql.functions.table import markdown

from .test_spark_examples import known_figures

_PAGE = Path(__file__).parents[2] / "docs" / "functions.md"


def test_the_page_is_the_catalogue() -> None:
    if os.environ.get("HEADWATER_UPDATE_GOLDEN"):
        _PAGE.write_text(markdown(known_figures()), encoding="utf-8")
    assert _PAGE.read_text(encoding="utf-8") == markdown(known_figures())
