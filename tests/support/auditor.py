"""The auditors, as tests use them: whatever is wrong fails the test in words."""

from hekla.apps.jobs import audit as rows
from hekla.controller import audit as everything


def audit() -> None:
    """The log and the rows agree."""
    assert rows.findings() == []


def audit_everything() -> None:
    """And so does what is at the backends."""
    assert everything.findings(again_after_seconds=1.0) == []
