"""How an API server is reached, and as whom: from a kubeconfig, or by the service account of the pod that we are.

Of a kubeconfig only what is data is taken: a server, certificates, a token. One that wants a program run to sign in
(`exec`, `auth-provider`) is refused, for whoever may name a file must not thereby run programs here.
"""

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from hekla.backends.base import BackendError

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NO_KUBECONFIG = (yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError, RecursionError, httpx.InvalidURL)


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
        token = _sendable(self.token_file.read_text()) if self.token_file else self.token
        return {"Authorization": f"Bearer {token}"} if token else {}


def by_account() -> Access:
    """As the pod that we are. Raises BackendError outside of a cluster."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (_ACCOUNT / "token").exists():
        raise BackendError("This console does not run in a cluster; name a kubeconfig.")
    name = f"[{host}]" if ":" in host else host
    context = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    return Access(f"https://{name}:{port}", context, token_file=_ACCOUNT / "token")


def by_kubeconfig(path: Path) -> Access:
    """As the current context of that file says. Raises BackendError, without a word of what is in the file."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        cluster, user = _chosen(document)
        return _access(cluster, user)
    except OSError as error:
        raise BackendError(f"The kubeconfig {path.name} cannot be read: {error.strerror}.") from error
    except _NO_KUBECONFIG:
        raise BackendError(f"The file {path.name} is no kubeconfig that can be used here.") from None


def _chosen(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    context = _named(document["contexts"], document["current-context"])["context"]
    cluster = _named(document["clusters"], context["cluster"])["cluster"]
    return cluster, _named(document["users"], context["user"])["user"] or {}


def _named(entries: list[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return {entry["name"]: entry for entry in entries}[name]


def _access(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> Access:
    if odd := {"exec", "auth-provider", "tokenFile", "username"} & user.keys():
        raise BackendError(f"The kubeconfig signs in by “{min(odd)}”; give it a token or a certificate.")
    server = str(cluster["server"]).rstrip("/")
    if not server.startswith("https://"):
        raise BackendError("The kubeconfig's server is not reached by https.")
    context = ssl.create_default_context(cadata=_decoded(cluster, "certificate-authority-data") or None)
    if cluster.get("insecure-skip-tls-verify"):
        raise BackendError("The kubeconfig does not check who the server is; give it the certificate.")
    _add_certificate(context, user)
    httpx.URL(server)
    return Access(server, context, _sendable(str(user.get("token") or "")))


def _sendable(token: str) -> str:
    """The token as a header holds it. Raises ValueError here, since the error of sending it would show it."""
    found = token.strip()
    if not found.isascii() or not found.isprintable() or " " in found:
        raise ValueError("The token has letters that no token has")
    return found


def _add_certificate(context: ssl.SSLContext, user: Mapping[str, Any]) -> None:
    """The library takes it from a file only: one that is there for a moment, for our eyes."""
    certificate, key = _decoded(user, "client-certificate-data"), _decoded(user, "client-key-data")
    if not certificate:
        return
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(certificate + "\n" + key)
        file.flush()
        context.load_cert_chain(file.name)


def _decoded(section: Mapping[str, Any], name: str) -> str:
    if name.removesuffix("-data") in section:
        raise BackendError(f"The kubeconfig names files; write them into it (`{name}`).")
    try:
        return base64.b64decode(str(section.get(name) or ""), validate=True).decode("ascii")
    except binascii.Error as error:
        raise ValueError(name) from error
