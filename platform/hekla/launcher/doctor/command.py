"""`hekla doctor` and `manage.py doctor`: what this machine lacks for Hekla, and what it has."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click

from hekla.launcher.doctor import containers, gpus, machine, services
from hekla.launcher.doctor.findings import LABELS, LANGUAGES, Finding, Severity, language_of_terminal, translator
from hekla.launcher.up.home import Home

_COLOURS = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.PROBLEM: "red"}


@click.command("doctor")
@click.option("--data", type=click.Path(path_type=Path), help="The data folder. Default: that of this checkout.")
@click.option("--language", type=click.Choice(list(LANGUAGES)), help="Default: the language of the terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(data: Path | None, language: str | None, as_json: bool) -> None:
    """Check this machine: isolation, containers, GPUs, data, servers, clusters. Exits with 1 for a problem."""
    home = Home(Path(os.path.abspath(data))) if data else Home.default()
    translate = translator(language or language_of_terminal())
    findings = list(examine(home))
    is_fine = all(one.severity is not Severity.PROBLEM for one in findings)
    if as_json:
        listed = [{"subject": one.subject, "severity": one.severity, "text": one.text(translate)} for one in findings]
        click.echo(json.dumps({"ok": is_fine, "findings": listed}, indent=2, ensure_ascii=False))
    else:
        for one in findings:
            label = click.style(translate(LABELS[one.severity]), fg=_COLOURS[one.severity])
            click.echo(f"{label}\t{one.text(translate)}")
    click.get_current_context().exit(0 if is_fine else 1)


def examine(home: Home) -> Iterator[Finding]:
    """All findings about this machine and this data folder. It changes nothing that lasts."""
    yield from machine.check_isolation()
    yield from containers.check_engines()
    yield gpus.check_gpus()
    yield from machine.check_data(home)
    yield from services.check_stores()
    yield machine.check_clock()
    yield from services.check_contexts(home)
