"""Copy the chart as it is published: its values name the image and the runbook of the same version.

`make publish` calls this; the chart in the repository knows neither address.
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

CHART = Path(__file__).parents[1] / "helm" / "eni-tasks"


def package(folder: Path, image: str, runbook: str) -> Path:
    """Copy the chart, and write the addresses into the copy's values.

    Args:
        folder: where the copy goes; what an earlier call left there is replaced.
        image: repository of the image, without a tag: the chart's appVersion is the tag.
        runbook: address of docs/runbook.md, or "" if it is published nowhere.

    Returns:
        The folder of the copy.
    """
    copy = folder / CHART.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(CHART, copy)
    values = copy / "values.yaml"
    text = _named(values.read_text(), r"^image:\n(?:  .*\n)*?  repository: ", image)
    values.write_text(_named(text, r"^    runbook: ", runbook))
    return copy


def _named(text: str, before: str, address: str) -> str:
    named, count = re.subn(f'({before})""', lambda found: f'{found[1]}"{address}"', text, flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"values.yaml has {count} places of the form {before!r}, not one")
    return named


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--image", required=True)
    parser.add_argument("--runbook", default="")
    given = parser.parse_args()
    package(given.folder, given.image, given.runbook)
