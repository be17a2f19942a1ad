"""Flows on the command line, with a console that runs real processes."""

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
def advancing_flows(console) -> Iterator[None]:
    """Advance flows, as the worker does after `up`."""
    stop = threading.Event()

    def advance() -> None:
        try:
            while not stop.wait(0.05):
                services.advance_all(now=clock.now())
        finally:
            connection.close()

    thread = threading.Thread(target=advance)
    thread.start()
    yield
    stop.set()
    thread.join(timeout=10)


def test_example_is_watched_and_shown(console):
    result = console("job", "submit", EXAMPLE, "--watch")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "Uploaded files: fit.py"
    assert lines[-1].lower() == "fitting has succeeded."
    output = console("flow", "show", "fitting").output
    assert [line.split()[0] for line in output.splitlines()[-3:]] == ["prepare", "train", "evaluate"]
    assert "mean square error" in console("job", "logs", "fitting-evaluate").output
    assert json.loads(console("flow", "list", "--json").output)[0]["phase"] == "succeeded"
    assert "fit " in console("template", "list").output
    assert "kind: JobFlow" in console("flow", "show", "fitting", "--manifest").output


def test_flow_is_checked_renamed_and_stopped(console, tmp_path):
    path = tmp_path / "flow.yaml"
    text = EXAMPLE.read_text().replace("[python, fit.py]", "[sleep, '60']")
    path.write_text(text)
    assert "would start this flow of 3 jobs" in console("job", "submit", path, "--dry-run").output
    assert "Started other of lab" in console("job", "submit", path, "--name", "other").output
    assert "other is" in console("flow", "stop", "other").output
    path.write_text(text.replace("targets: [train]", "targets: [trian]"))
    result = console("job", "submit", path)
    assert result.exit_code == 1
    assert "spec.flows[2].dependsOn.targets[0]" in result.output
    assert "Did you mean “train”?" in result.output


def test_templates_are_saved(console, tmp_path):
    path = tmp_path / "templates.yaml"
    path.write_text(EXAMPLE.read_text().split("---")[0].replace("[python, fit.py]", "['true']"))
    assert "Saved fit" in console("job", "submit", path).output
    assert console("job", "submit", path, "--dry-run").exit_code == 1
    assert "Unknown flow" in console("flow", "show", "fit").output
