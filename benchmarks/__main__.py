"""Run the benchmarks one after the other: ``python -m benchmarks [name ...] [-- arguments]``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    folder = Path(__file__).parent
    known = sorted(p.stem for p in folder.glob("*.py") if not p.stem.startswith("_"))
    given = sys.argv[1:]
    split = given.index("--") if "--" in given else len(given)
    names, rest = given[:split] or known, given[split + 1 :]
    unknown = [n for n in names if n not in known]
    if unknown:
        print(f"error: no benchmark `{unknown[0]}`; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    for name in names:
        print(f"== {name}", flush=True)
        done = subprocess.run([sys.executable, str(folder / f"{name}.py"), *rest], check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
