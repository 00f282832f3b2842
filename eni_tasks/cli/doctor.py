"""`eni-tasks doctor`: what does not work, and what to do about it."""

from __future__ import annotations

import typer

from eni_tasks.bootstrap import Services
from eni_tasks.cli.output import TROUBLE, JsonFlag, Table, exit_on_error, print_json, print_page, working
from eni_tasks.cli.processes import start
from eni_tasks.domain.words import counted
from eni_tasks.services.doctor.findings import Finding, Verdict
from eni_tasks.tasks.app import make_app
from eni_tasks.tasks.messages import CeleryMessages, CeleryWorkers
from eni_tasks.tasks.registry import QUEUES

COLUMNS = ("verdict", "area", "what", "finding")


def doctor(*, json: JsonFlag = False) -> None:
    """Examine Redis, the API server and our rights there, AWS and each EC2 right, workers, watcher and clocks.

    Nothing is changed: rights to EC2's mutations are checked by dry runs. Exit code 1 if something does not work.
    """
    with exit_on_error():
        settings = start()
        app = make_app(settings)
        examination = Services(settings, CeleryMessages(app), interactive=True).doctor(CeleryWorkers(app))
        findings: list[Finding] = []
        with working("Examining") as progress:
            for area, found in examination.examine(QUEUES):
                progress(area)
                findings += found
    trouble = [each for each in findings if each.verdict is Verdict.TROUBLE]
    if json:
        print_json({"trouble_count": len(trouble), "findings": findings})
    else:
        print_page(*page(findings))
    if trouble:
        raise typer.Exit(TROUBLE)


def page(findings: list[Finding]) -> list[str | Table]:
    """All findings in a table, then what to do about those that are not ok."""
    rows = [(each.verdict.value, each.area, each.what, each.message) for each in findings]
    to_do = [each for each in findings if each.advice]
    shown: list[str | Table] = [Table(COLUMNS, rows)]
    if to_do:
        advice = [(each.verdict.value, each.area, each.what, each.advice) for each in to_do]
        shown.append(Table(("verdict", "area", "what", "what to do"), advice, "What to do"))
    count = sum(each.verdict is Verdict.TROUBLE for each in findings)
    shown.append(f"{counted(len(findings), 'check')}, {count or 'none'} in trouble.")
    return shown
