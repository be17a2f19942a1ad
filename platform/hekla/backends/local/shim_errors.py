"""Errors for which the shim ends a pod before the pod's process has run. Standard library only."""


class StopRequested(Exception):
    """A stop of the pod was requested."""


class PodStartError(Exception):
    """The pod cannot run: the reason code, a message, and the exit code that a shell would return."""

    def __init__(self, reason: str, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.reason, self.message, self.exit_code = reason, message, exit_code
