"""Which console a command speaks to: what its options say, else what is known on this machine."""

from dataclasses import dataclass
from pathlib import Path

from hekla.client.credentials import ServerCredentials, find_credentials


@dataclass(frozen=True, slots=True)
class Choice:
    """What the command's options and the environment say; all of it may be left out."""

    url: str | None = None
    token: str | None = None
    home: Path | None = None

    def server(self) -> ServerCredentials:
        """The console to speak to. Raises NotConfiguredError where there is none, or no token for it."""
        return find_credentials(self.url, self.token, self.home)
