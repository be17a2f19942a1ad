"""The audits, for tests: any finding fails the test with its message."""

from hekla.apps.jobs import audit as rows
from hekla.controller import audit as everything


def audit() -> None:
    """The event log and the rows agree."""
    assert rows.findings() == []


def audit_everything() -> None:
    """The event log, the rows and the backends agree."""
    assert everything.findings(again_after_seconds=1.0) == []
