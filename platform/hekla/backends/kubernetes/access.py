"""How an API server is reached, and as whom: by a key, or by the service account of the pod that we are."""

import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from hekla.backends.kubernetes import keys
from hekla.backends.kubernetes.keys import ClusterKey, KeyRefused
from hekla.domain.translation import translate

KUBECONFIGS = "kubeconfigs"
"""The folder below the data folder in which an operator puts files."""
MAX_FILE_BYTES = 1024 * 1024
"""An operator's own file may hold many clusters."""
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Access:
    """An API server and the key to it, which is in no text that is shown.

    `token_file`: read anew at each use, since the tokens of service accounts are changed while they are in use.
    """

    server: str
    context: ssl.SSLContext = field(repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None

    def header(self) -> dict[str, str]:
        """What proves who we are, where that is not the certificate."""
        token = keys.sendable(self.token_file.read_text()) if self.token_file else self.token
        return {"Authorization": f"Bearer {token}"} if token else {}


def find(home: Path, kubeconfig: str, key: str | None) -> Access:
    """By the key that the console keeps, where there is one; else by the file of that name below `home`; where none is
    named, as the pod that we are. Raises BackendError.
    """
    if key is not None:
        return from_key(keys.decode(key))
    return from_kubeconfig(home / KUBECONFIGS / kubeconfig) if kubeconfig else from_account()


def from_account() -> Access:
    """As the pod that we are. Raises BackendError outside of a cluster."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (_ACCOUNT / "token").exists():
        raise KeyRefused(translate("This console does not run in a cluster; name a kubeconfig."))
    name = f"[{host}]" if ":" in host else host
    try:
        context = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    except OSError as error:
        raise KeyRefused(translate("The service account of this console cannot be read: {why}.", why=error)) from error
    return Access(f"https://{name}:{port}", context, token_file=_ACCOUNT / "token")


def from_kubeconfig(path: Path) -> Access:
    """As the current context of that file says. Raises BackendError, without a word of what is in the file."""
    try:
        text = path.read_text(encoding="utf-8")
        return from_key(keys.from_kubeconfig(text, most=MAX_FILE_BYTES))
    except OSError as error:
        sentence = translate("The kubeconfig {name} cannot be read: {why}.", name=path.name, why=error.strerror)
        raise KeyRefused(sentence) from error
    except (KeyRefused, UnicodeError) as error:
        why = str(error) if isinstance(error, KeyRefused) else translate("This is no kubeconfig that can be used here.")
        raise KeyRefused(translate("The file {name}: {why}", name=path.name, why=why)) from None


def from_key(key: ClusterKey) -> Access:
    """As the key says. Raises KeyRefused."""
    return Access(key.server, key.context(), key.token)
