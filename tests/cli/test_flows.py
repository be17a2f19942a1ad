"""Flows from the command line, against a console that runs real processes."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from hekla.apps.flows import services
from hekla.lib import clock

pytestmark = pytest.mark.parametrize("world", ["local"], indirect=True)
EXAMPLE = Path(__file__).resolve().parents[2] / "platform" / "examples" / "flow" / "flow.yaml"


@pytest.fixture(autouse=True)
def going_on(console) -> Iterator[None]:
    """What lets flows go on after `up`."""
    stop = threading.Event()

    def look() -> None:
        try:
            while not stop.wait(0.05):
                services.advance_all(now=clock.now())
        finally:
            connection.close()

    looker = threading.Thread(target=look)
    looker.start()
    yield
    stop.set()
    looker.join(timeout=10)


def test_the_example_is_watched_to_its_end_and_looked_at(console):
    result = console("job", "submit", EXAMPLE, "--watch")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "Uploaded files: fit.py"
    assert lines[-1].lower() == "fitting has succeeded."
    shown = console("flow", "show", "fitting").output
    assert [line.split()[0] for line in shown.splitlines()[-3:]] == ["prepare", "train", "evaluate"]
    assert "mean square error" in console("job", "logs", "fitting-evaluate").output
    assert json.loads(console("flow", "list", "--json").output)[0]["phase"] == "succeeded"
    assert "fit " in console("template", "list").output
    assert "kind: JobFlow" in console("flow", "show", "fitting", "--manifest").output


def test_a_flow_is_judged_renamed_and_stopped(console, tmp_path):
    path = tmp_path / "flow.yaml"
    text = EXAMPLE.read_text().replace("[python, fit.py]", "[sleep, '60']")
    path.write_text(text)
    assert "would start this flow of 3 jobs" in console("job", "submit", path, "--dry-run").output
    assert "Started other of lab" in console("job", "submit", path, "--name", "other").output
    assert "other is" in console("flow", "stop", "other").output
    path.write_text(text.replace("targets: [train]", "targets: [trian]"))
    wrong = console("job", "submit", path)
    assert wrong.exit_code == 1
    assert "spec.flows[2].dependsOn.targets[0]" in wrong.output
    assert "Did you mean “train”?" in wrong.output


def test_templates_alone_are_kept(console, tmp_path):
    path = tmp_path / "templates.yaml"
    path.write_text(EXAMPLE.read_text().split("---")[0].replace("[python, fit.py]", "['true']"))
    assert "Kept fit" in console("job", "submit", path).output
    assert console("job", "submit", path, "--dry-run").exit_code == 1
    assert "Unknown flow" in console("flow", "show", "fit").output
