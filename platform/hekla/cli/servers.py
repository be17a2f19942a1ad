"""The server that a command uses: from its options, else from this machine's settings."""

from dataclasses import dataclass
from pathlib import Path

from hekla.client.credentials import ServerCredentials, find_credentials


@dataclass(frozen=True, slots=True)
class Choice:
    """The command's options or their environment variables; each of them is optional."""

    url: str | None = None
    token: str | None = None
    home: Path | None = None

    def server(self) -> ServerCredentials:
        """The server and its token. Raises NotConfiguredError without a token for it."""
        return find_credentials(self.url, self.token, self.home)
