"""checks: may people see these rows? Data tests as dbt users know them, kept as views of the rows that break them."""

from headwater.pipeline.checks.check import Check, parse_checks
from headwater.pipeline.checks.evaluation import CheckResult, CheckResults, evaluate

__all__ = ["Check", "CheckResult", "CheckResults", "evaluate", "parse_checks"]
