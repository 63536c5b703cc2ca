"""Decimals as whole numbers in DuckDB, for what DuckDB itself does with doubles: quotients and averages.

A decimal(p, s) is a whole number of 10^-s. `whole_form` gives that number as a HUGEINT, `scaled_form` goes the way
back. Both multiply where the product has at most 38 digits, and go by the decimal's text where it has not.
"""

from __future__ import annotations

__all__ = ["scaled_form", "whole_form"]

_MOST_DIGITS = 38
_LONG_DIGITS = 18


def whole_form(x: str, digits: tuple[int, int]) -> str:
    """DuckDB's SQL of a decimal's unscaled value.

    >>> whole_form("x", (5, 0))
    'CAST(x AS HUGEINT)'
    """
    precision, scale = digits
    if scale == 0:
        return f"CAST({x} AS HUGEINT)"
    if precision + scale + 1 <= _MOST_DIGITS:
        if precision <= _LONG_DIGITS < precision + scale + 1:
            # DuckDB multiplies two small decimals in 18 digits, whatever their product needs.
            x = f"CAST({x} AS DECIMAL({precision + scale + 1},{scale}))"
        return f"CAST({x} * CAST(1{'0' * scale} AS DECIMAL({scale + 1},0)) AS HUGEINT)"
    return f"CAST(replace(CAST({x} AS VARCHAR), '.', '') AS HUGEINT)"


def scaled_form(x: str, precision: int, scale: int) -> str:
    """DuckDB's SQL of the decimal with this unscaled value; it raises where the digits do not suffice.

    >>> scaled_form("x", 5, 0)
    'CAST(x AS DECIMAL(5,0))'
    """
    if scale == 0:
        return f"CAST({x} AS DECIMAL({precision},0))"
    if precision + scale + 1 <= _MOST_DIGITS:
        unit = f"CAST('0.{'0' * (scale - 1)}1' AS DECIMAL({scale + 1},{scale}))"
        return f"CAST(CAST({x} AS DECIMAL({precision},0)) * {unit} AS DECIMAL({precision},{scale}))"
    # The text of |x| with at least one digit before the point.
    digits = f"lpad(CAST(abs({x}) AS VARCHAR), greatest({scale + 1}, length(CAST(abs({x}) AS VARCHAR)))::INTEGER, '0')"
    sign = f"CASE WHEN {x} < 0 THEN '-' ELSE '' END"
    return f"CAST({sign} || {digits}[:-{scale + 1}] || '.' || {digits}[-{scale}:] AS DECIMAL({precision},{scale}))"
