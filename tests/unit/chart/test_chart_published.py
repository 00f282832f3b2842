"""`make publish`, as the workflow runs it: the commands, and a chart that can be installed as it is."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import helm_python
import pytest
import yaml
from chart import ROOT

if TYPE_CHECKING:
    from pathlib import Path

REGISTRY = "registry.example/team"
RUNBOOK = "https://git.example/eni-tasks/docs/runbook.md"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
WORKFLOW = ROOT / ".github" / "workflows" / "publish.yaml"
# Docker and Helm that only write down what they are asked.
RECORDER = '#!/bin/sh\necho "${0##*/} $*" >> "$RECORD"\n'


def publish(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    for name in ("docker", "helm"):
        (folder / name).write_text(RECORDER)
        (folder / name).chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "RECORD": str(folder / "record"), **variables}
    command = ["make", "--no-print-directory", "publish", f"PYTHON={sys.executable}", f"PUBLISHED={folder}"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def rendered(folder: Path, values: dict[str, Any]) -> list[dict[str, Any]]:
    with helm_python.Chart.load(folder / "eni-tasks") as chart:
        texts = chart.render(values, name="eni-tasks", namespace="kube-system")
    found = (yaml.safe_load_all(text) for path, text in texts.items() if path.endswith(".yaml"))
    return [manifest for manifests in found for manifest in manifests if manifest]


def test_image_and_chart_are_published_and_the_chart_names_the_image(tmp_path):
    done = publish(tmp_path, REGISTRY=REGISTRY, RUNBOOK=RUNBOOK)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "record").read_text().splitlines() == [
        f"docker build --tag {REGISTRY}/eni-tasks:{VERSION} .",
        f"docker push {REGISTRY}/eni-tasks:{VERSION}",
        f"helm package {tmp_path}/eni-tasks --destination {tmp_path}",
        f"helm push {tmp_path}/eni-tasks-{VERSION}.tgz oci://{REGISTRY}/charts",
    ]
    found = rendered(tmp_path, {"settings": {"cluster": "prod"}, "monitoring": {"alerts": {"enabled": True}}})
    images = {
        c["image"] for o in found if o["kind"] == "Deployment" for c in o["spec"]["template"]["spec"]["containers"]
    }
    assert images == {f"{REGISTRY}/eni-tasks:{VERSION}"}
    (rules,) = [o for o in found if o["kind"] == "PrometheusRule"]
    urls = {rule["annotations"]["runbook_url"] for rule in rules["spec"]["groups"][0]["rules"]}
    assert f"{RUNBOOK}#enitasksnodesindeficit" in urls


def test_without_a_registry_nothing_is_built(tmp_path):
    done = publish(tmp_path, REGISTRY="")
    assert done.returncode != 0
    assert "make publish REGISTRY=registry.example/team" in done.stderr
    assert not (tmp_path / "record").exists()


def test_from_a_checkout_the_image_must_be_named():
    chart = ROOT / "helm"
    with pytest.raises(helm_python.HelmError, match=r"image\.repository: name where the image"):
        rendered(chart, {"settings": {"cluster": "prod"}})


def test_the_workflow_fits_githubs_schema_and_runs_it():
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(WORKFLOW)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step][-1] == "make publish"
    assert job["env"].keys() == {"REGISTRY", "RUNBOOK"}
