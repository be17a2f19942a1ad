"""Reports on the command line, from their creation to their end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from tests.controller.conftest import SIZE, World, operated

from hekla.apps.reports.models import Report


@pytest.fixture
def world(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[World]:
    with operated([{"name": "n", "allocatable": SIZE}], settings, tmp_path) as made:
        yield made


def test_a_report_from_its_creation_to_its_end(console: Any, tmp_path: Path) -> None:
    assert "waste" in console("report", "sections").output
    settings = ("--every", "week", "--hour", 9, "--section", "classes", "--section", "people", "--to", "alice")
    assert "use is saved: next at" in console("report", "create", "use", *settings).output
    assert Report.objects.get().spec["sections"] == ["classes", "people"]
    assert "use is saved: sent only by hand." in console("report", "edit", "use", "--every", "never").output
    found = console("report", "show", "use").output
    assert "GPU HOURS" in found
    assert "No pod held GPUs in this period." in found
    file = tmp_path / "use.pdf"
    assert "Saved" in console("report", "download", "use", "-o", file).output
    assert len(pypdfium2.PdfDocument(file.read_bytes())) == 1
    assert "exists" in console("report", "download", "use", "-o", file).output
    assert "Saved" in console("report", "download", "use", "-o", file, "--kind", "html", "--force").output
    assert file.read_text().startswith("<!doctype html>")
    assert "is being sent to 1 people" in console("report", "send", "use").output
    assert "in the console only" in console("report", "history", "use").output
    assert "use is paused." in console("report", "pause", "use").output
    assert "paused" in console("report", "list").output
    assert "use is not paused." in console("report", "pause", "use", "--end").output
    refusal = console("report", "edit", "use", "--to", "nobody")
    assert (refusal.exit_code, "Unknown person" in refusal.output) == (1, True)
    assert "is deleted" in console("report", "delete", "use").output
    assert "No reports." in console("report", "list").output
    assert "Unknown report" in console("report", "show", "use").output
