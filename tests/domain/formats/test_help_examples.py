"""The manifests on the help pages can be submitted as they stand."""

import re
from textwrap import dedent

import pytest

from hekla.domain import formats
from hekla.lib.checkout import CHECKOUT

PAGES = ("submitting.md", "zh-hans/submitting.md")
EXAMPLE = re.compile(r"(?:^ {4}\S.*\n|^ {5,}.*\n)+", re.MULTILINE)


def manifests(page):
    text = (CHECKOUT / "platform" / "help" / page).read_text(encoding="utf-8")
    return [dedent(found[0]) for found in EXAMPLE.finditer(text) if found[0].lstrip().startswith("apiVersion:")]


@pytest.mark.parametrize("page", PAGES)
def test_manifests_of_a_page_are_jobs_without_ignored_fields(page):
    loaded = [formats.load(text) for text in manifests(page)]
    assert {task.name for job in loaded for task in job.spec.tasks} >= {"submitter", "driver", "taskmanager"}
    ignored = [warning for job in loaded for warning in job.warnings if ": ignored" in warning]
    assert ignored == []
