"""Build wheels that bring the machine code of the kernels, where this machine can compile it.

Everything else is in pyproject.toml. A wheel with machine code is for one Python version and one platform. With
``HEADWATER_SHIP_KERNELS=0``, or on an architecture that nothing is shipped for, kernels are compiled at first use.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

_SOURCES = Path(__file__).parent / "src"


def _ships() -> bool:
    wanted = os.environ.get("HEADWATER_SHIP_KERNELS", "1") != "0"
    return wanted and importlib.util.find_spec("numba") is not None


class BuildWithKernels(build_py):
    """Copies the sources, then compiles the kernels beside them."""

    def run(self) -> None:
        super().run()
        if self.editable_mode or not _ships():
            return
        folder = Path(self.build_lib) / "headwater" / "kernels"
        subprocess.run(
            [sys.executable, "-m", "headwater.kernels.ship", str(folder.resolve())],
            check=True,
            env={**os.environ, "PYTHONPATH": str(_SOURCES)},
        )


class PlatformWheel(bdist_wheel):
    """Names the wheel for this Python and platform, if it has machine code."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if _ships():
            self.root_is_pure = False


setup(cmdclass={"build_py": BuildWithKernels, "bdist_wheel": PlatformWheel})
