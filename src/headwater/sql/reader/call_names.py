"""How Spark spells calls in the names of columns, where it is not as they were written."""

from __future__ import annotations

__all__ = ["DEFAULTS", "FORMS", "RENAMED", "UNITS_FIRST", "UPPER"]

# Spelled in capitals.
_CAPITALS = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot csc degrees dense_rank e exp expm1 floor
    hypot log10 log1p log2 percent_rank pi power radians rank regexp regexp_like rlike sec signum sin sinh
    sqrt tan tanh
"""
UPPER = frozenset(_CAPITALS.split())
RENAMED = {"array_agg": "collect_list", "curdate": "current_date", "to_varchar": "to_char"}
# The last argument that Spark adds by itself, and how many there are then.
DEFAULTS = {
    "listagg": ("NULL", 2),
    "string_agg": ("NULL", 2),
    "vector_norm": ("2.0", 2),
    "vector_normalize": ("2.0", 2),
    "round": ("0", 2),
    "bround": ("0", 2),
    "locate": ("1", 3),
    "substr": ("2147483647", 3),
    "position": ("1", 3),
    "regexp_replace": ("1", 4),
    "regexp_extract": ("1", 3),
    "months_between": ("true", 3),
    "unix_timestamp": ("yyyy-MM-dd HH:mm:ss", 2),
    "from_unixtime": ("yyyy-MM-dd HH:mm:ss", 2),
    "lpad": (" ", 3),
    "rpad": (" ", 3),
    "percentile": ("1", 3),
    "approx_percentile": ("10000", 3),
    "percentile_approx": ("10000", 3),
    "regexp_instr": ("0", 3),
    "regexp_extract_all": ("1", 3),
    "split": ("-1", 3),
    "overlay": ("-1", 4),
    "replace": ("", 3),
    "to_unix_timestamp": ("yyyy-MM-dd HH:mm:ss", 2),
}
# Calls that Spark understands as something else, by name and number of arguments.
FORMS: dict[tuple[str, int], str] = {
    ("aes_decrypt", 2): "aes_decrypt({0}, {1}, GCM, DEFAULT, )",
    ("aes_decrypt", 3): "aes_decrypt({0}, {1}, {2}, DEFAULT, )",
    ("aes_decrypt", 4): "aes_decrypt({0}, {1}, {2}, {3}, )",
    ("aes_encrypt", 2): "aes_encrypt({0}, {1}, GCM, DEFAULT, , )",
    ("aes_encrypt", 3): "aes_encrypt({0}, {1}, {2}, DEFAULT, , )",
    ("aes_encrypt", 4): "aes_encrypt({0}, {1}, {2}, {3}, , )",
    ("aes_encrypt", 5): "aes_encrypt({0}, {1}, {2}, {3}, {4}, )",
    ("assert_true", 1): "assert_true({0}, '{0}' is not true!)",
    ("datepart", 2): "datepart({0} FROM {1})",
    ("like", 2): "{0} LIKE {1}",
    ("like", 3): "{0} LIKE {1} ESCAPE '{2}'",
    ("rank", 1): "RANK()",
    ("dense_rank", 1): "DENSE_RANK()",
    ("percent_rank", 1): "PERCENT_RANK()",
    ("time_bucket", 2): "time_bucket({0}, {1}, TIMESTAMP '1970-01-01 00:00:00')",
    ("try_aes_decrypt", 2): "try_aes_decrypt({0}, {1}, GCM, DEFAULT, )",
    ("try_aes_decrypt", 3): "try_aes_decrypt({0}, {1}, {2}, DEFAULT, )",
    ("try_aes_decrypt", 4): "try_aes_decrypt({0}, {1}, {2}, {3}, )",
    ("try_make_timestamp", 7): "try_make_timestamp({0}, {1}, {2}, {3}, {4}, {5})",
    ("dateadd", 2): "date_add({0}, {1})",
    ("dateadd", 3): "timestampadd({0}, {1}, {2})",
    ("datediff", 3): "timestampdiff({0}, {1}, {2})",
    ("date_diff", 3): "timestampdiff({0}, {1}, {2})",
    ("date_add", 3): "timestampadd({0}, {1}, {2})",
    ("timediff", 3): "timestampdiff({0}, {1}, {2})",
    ("convert_timezone", 2): "convert_timezone(current_timezone(), {0}, {1})",
    ("ltrim", 2): "TRIM(LEADING {0} FROM {1})",
    ("rtrim", 2): "TRIM(TRAILING {0} FROM {1})",
    ("div", 2): "({0} div {1})",
    ("approx_count_distinct", 2): "approx_count_distinct({0})",
    ("ceil", 2): "ceil({0}, {1})",
    ("floor", 2): "floor({0}, {1})",
    ("positive", 1): "(+ {0})",
    ("mask", 1): "mask({0}, X, x, n, NULL)",
    ("mask", 2): "mask({0}, {1}, x, n, NULL)",
    ("mask", 3): "mask({0}, {1}, {2}, n, NULL)",
    ("mask", 4): "mask({0}, {1}, {2}, {3}, NULL)",
}
# Their first argument is a bare word.
UNITS_FIRST = frozenset({"date_add", "dateadd", "datediff", "date_diff", "timediff", "timestampadd", "timestampdiff"})
