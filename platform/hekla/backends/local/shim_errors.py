"""Why the shim ends a pod before its own process ran. Standard library only."""


class StopRequested(Exception):
    """The pod was asked to end."""


class PodStartError(Exception):
    """The pod cannot run: the code of the reason, a sentence, and the exit code that a shell would give."""

    def __init__(self, reason: str, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.reason, self.message, self.exit_code = reason, message, exit_code
