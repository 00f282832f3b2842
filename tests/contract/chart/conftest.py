"""Helm, pointed at the real API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from chart import CHART, NAMESPACE, RELEASE, Values
from contract.kube_servers import ADMIN, KubeTarget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Helm's library keeps what it learns of a server below the home folder, and looks there again.
ONE_ACTION = """
import json, sys, helm_python
action, chart, release, namespace = sys.argv[1:]
with helm_python.Config(namespace=namespace) as config:
    if action == "uninstall":
        config.uninstall(release)
    else:
        getattr(config, action)(chart, release, json.load(sys.stdin))
"""


@pytest.fixture
def helm(real_kube: KubeTarget, tmp_path: Path) -> Callable[[str, Values], None]:
    """Installs, upgrades or uninstalls the release."""
    kubeconfig = real_kube.kubeconfig(tmp_path / "kubeconfig", token=ADMIN)

    def run(action: str, values: Values) -> None:
        subprocess.run(
            [sys.executable, "-c", ONE_ACTION, action, str(CHART), RELEASE, NAMESPACE],
            input=json.dumps(values),
            env={**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(kubeconfig)},
            text=True,
            check=True,
        )

    return run
