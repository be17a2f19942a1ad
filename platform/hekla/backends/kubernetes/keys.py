"""Credentials of API servers that people enter in the console: a kubeconfig, or a server address with a token.

Only the current context of a kubeconfig is used, and only its data: server, certificates, token. People who enter
credentials in a browser must not be able to run programs or read files on this machine. So a kubeconfig that runs a
sign-in program, names files or needs unsupported features is refused. It never reaches the official client, which would
obey it. Operators' own files, which the client reads, have fewer restrictions (`check_operators`).
"""

import base64
import binascii
import json
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hekla.backends.base import BackendError
from hekla.domain import yaml_text
from hekla.domain.errors import Invalid
from hekla.domain.translation import translate

MAX_BYTES = 64 * 1024
MAX_SERVER = 300
_NO_KUBECONFIG = (Invalid, LookupError, TypeError, ValueError, AttributeError)
_OTHER_SIGN_INS = {"exec", "auth-provider", "tokenFile", "username", "password"}
_IMPERSONATION = {"as", "as-uid", "as-groups", "as-user-extra"}
_OTHER_ROUTES = {"proxy-url", "tls-server-name"}
_PROXIES = ("http", "https")


class KeyRefused(BackendError):
    """These credentials can never work. `part`: the invalid part (`server`, `authority`, `token`), or empty."""

    def __init__(self, sentence: str, part: str = "") -> None:
        super().__init__(sentence)
        self.part = part


@dataclass(frozen=True, slots=True)
class ClusterKey:
    """A server with our credentials. `user`: the user name in the kubeconfig. Certificates and keys are PEM text."""

    server: str
    user: str = ""
    authority: str = ""
    token: str = field(default="", repr=False)
    certificate: str = ""
    private: str = field(default="", repr=False)

    def encode(self) -> str:
        """Serialize the credentials, secrets included; store the result encrypted."""
        return json.dumps(asdict(self))

    def context(self) -> ssl.SSLContext:
        """The TLS context that verifies the server and presents our certificate. Raises KeyRefused."""
        try:
            context = ssl.create_default_context(cadata=self.authority or None)
        except (ssl.SSLError, ValueError):
            sentence = translate("Cannot read the CA certificate. Use PEM format.")
            raise KeyRefused(sentence, "authority") from None
        if self.certificate:
            _show(context, f"{self.certificate}\n{self.private}")
        return context


def decode(text: str) -> ClusterKey:
    """Parse the result of `ClusterKey.encode`. Raises KeyRefused if it cannot be read."""
    try:
        return ClusterKey(**json.loads(text))
    except (TypeError, ValueError):
        sentence = translate(
            "The credentials of this cluster cannot be decrypted: the secret key of this console has changed. "
            "Replace the credentials."
        )
        raise KeyRefused(sentence) from None


def from_token(server: str, authority: str, token: str) -> ClusterKey:
    """Credentials from a token. Raises KeyRefused, with the invalid part."""
    if "PRIVATE KEY" in authority:
        raise KeyRefused(translate("This file has a private key. Enter the certificate only."), "authority")
    key = ClusterKey(_checked_server(server), authority=authority.strip(), token=_checked_token(token))
    if not key.token:
        raise KeyRefused(translate("Enter a token."), "token")
    key.context()
    return key


def from_kubeconfig(text: str) -> ClusterKey:
    """The credentials of the current context. Raises KeyRefused; of the content, messages show only field names."""
    if len(text.encode()) > MAX_BYTES:
        raise KeyRefused(translate("The kubeconfig is larger than {kib} KiB.", kib=MAX_BYTES // 1024))
    try:
        (document,) = yaml_text.read(text)
        key = _in_current_context(document)
    except _NO_KUBECONFIG:
        raise KeyRefused(translate("Invalid kubeconfig.")) from None
    key.context()
    return key


def check_operators(document: Mapping[str, Any], context: str) -> Mapping[str, Any]:
    """The user entry of this context in an operator's file; empty: of its current context.

    Refuses what the official client would ignore silently, or do without verifying the server. Raises KeyRefused, or
    other exceptions if it is not a kubeconfig.
    """
    cluster, user, _name = _in_context(document, context or document["current-context"])
    _refuse_impersonation(user)
    _refuse_unchecked_server(cluster)
    _checked_server(_text(cluster, "server"))
    if (proxy := _text(cluster, "proxy-url")) and urlsplit(proxy).scheme not in _PROXIES:
        raise KeyRefused(translate("The proxy in the kubeconfig must have an http or https address."))
    if provider := user.get("auth-provider"):
        _check_provider(provider)
    return user


def _in_current_context(document: Mapping[str, Any]) -> ClusterKey:
    cluster, user, name = _in_context(document, document["current-context"])
    _refuse_more_than_data(cluster, user)
    return ClusterKey(
        server=_checked_server(_text(cluster, "server")),
        user=name[:253],
        authority=_decoded(cluster, "certificate-authority-data"),
        token=_checked_token(_text(user, "token")),
        certificate=_decoded(user, "client-certificate-data"),
        private=_decoded(user, "client-key-data"),
    )


def _in_context(document: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], Mapping[str, Any], str]:
    """The cluster entry, the user entry and the user's name."""
    context = _named(document["contexts"], name)["context"]
    cluster = _named(document["clusters"], context["cluster"])["cluster"]
    user = _named(document["users"], context["user"])["user"] or {}
    return cluster, user, str(context["user"])


def _named(entries: list[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return {entry["name"]: entry for entry in entries}[name]


def _refuse_more_than_data(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> None:
    if odd := _OTHER_SIGN_INS & user.keys():
        raise _unknown_sign_in(min(odd))
    _refuse_impersonation(user)
    if odd := {name for name in _OTHER_ROUTES if cluster.get(name)}:
        sentence = translate("The kubeconfig uses “{way}”, which is not supported. Remove it.", way=min(odd))
        raise KeyRefused(sentence)
    _refuse_unchecked_server(cluster)


def _unknown_sign_in(sign_in: str) -> KeyRefused:
    return KeyRefused(translate("The kubeconfig signs in with “{way}”. Use a token or a certificate.", way=sign_in))


def _refuse_impersonation(user: Mapping[str, Any]) -> None:
    if odd := _IMPERSONATION & user.keys():
        sentence = translate("The kubeconfig impersonates another user (“{way}”). This is not supported.", way=min(odd))
        raise KeyRefused(sentence)


def _refuse_unchecked_server(cluster: Mapping[str, Any]) -> None:
    if cluster.get("insecure-skip-tls-verify"):
        raise KeyRefused(translate("The kubeconfig does not verify the server. Add the CA certificate."))


def _check_provider(provider: Mapping[str, Any]) -> None:
    """Raise KeyRefused unless it is OIDC with a CA certificate. The client does not verify a provider without one."""
    if provider["name"] != "oidc":
        raise _unknown_sign_in(f"auth-provider: {provider['name']}"[:100])
    if not provider["config"].keys() & {"idp-certificate-authority", "idp-certificate-authority-data"}:
        sentence = translate(
            "The kubeconfig signs in by OIDC; name the certificate of its provider too (“{field}”).",
            field="idp-certificate-authority",
        )
        raise KeyRefused(sentence)


def _checked_server(text: str) -> str:
    """The address, valid as a prefix of paths and safe to display. Raises KeyRefused."""
    server = text.strip().rstrip("/")
    if not server.startswith("https://"):
        raise KeyRefused(translate("The server address must begin with https://."), "server")
    try:
        url = urlsplit(server)
        is_address = bool(url.hostname) and url.port != 0 and server.isascii() and server.isprintable()
    except ValueError:
        is_address = False
    if not is_address or " " in server or url.query or url.fragment or len(server) > MAX_SERVER:
        raise KeyRefused(translate("Invalid server address."), "server")
    if "@" in url.netloc:
        raise KeyRefused(translate("The server address contains a user name or password. Remove it."), "server")
    return server


def _checked_token(text: str) -> str:
    try:
        return sendable(text)
    except ValueError:
        raise KeyRefused(translate("Invalid token: it contains characters that tokens cannot have."), "token") from None


def sendable(token: str) -> str:
    """The token, valid in a header. Raises ValueError early, because the error from sending it would show the token."""
    found = token.strip()
    if not found.isascii() or not found.isprintable() or " " in found:
        raise ValueError("The token has letters that no token has")
    return found


def _show(context: ssl.SSLContext, certificate: str) -> None:
    """Load our certificate. The library reads it only from a file, so it is in a private temporary one for a moment.

    With an empty password, an encrypted key fails instead of prompting at the terminal.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(certificate)
        file.flush()
        try:
            context.load_cert_chain(file.name, password="")
        except (ssl.SSLError, ValueError):
            sentence = translate("Cannot read the client certificate or key in the kubeconfig.")
            raise KeyRefused(sentence) from None


def _text(section: Mapping[str, Any], name: str) -> str:
    """The text of a field. Raises TypeError if it is not text, because a conversion could change it."""
    found = section.get(name) or ""
    if not isinstance(found, str):
        raise TypeError(name)
    return found


def _decoded(section: Mapping[str, Any], name: str) -> str:
    if name.removesuffix("-data") in section:
        sentence = translate("The kubeconfig refers to files. Embed their content (“{field}”).", field=name)
        raise KeyRefused(sentence)
    try:
        return base64.b64decode(_text(section, name), validate=True).decode("ascii")
    except binascii.Error as error:
        raise ValueError(name) from error
