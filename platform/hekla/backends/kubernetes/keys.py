"""Keys to API servers as people give them to the console: a kubeconfig, or an address with a token.

Of a kubeconfig only its current context is taken, and of that only data: a server, certificates, a token. Whoever gives
a key in a browser must not thereby run programs or read files of this machine, so a kubeconfig that signs in by a
program, names files, or asks for what is not done here is refused. It never reaches the official client, which would do
as it says. For an operator's own files, which the client reads, less is refused (`check_operators`).
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
from hekla.domain.errors import Invalid
from hekla.domain.formats import yaml_text
from hekla.domain.translation import translate

MAX_BYTES = 64 * 1024
MAX_SERVER = 300
_NO_KUBECONFIG = (Invalid, LookupError, TypeError, ValueError, AttributeError)
_OTHER_SIGN_INS = {"exec", "auth-provider", "tokenFile", "username", "password"}
_IMPERSONATION = {"as", "as-uid", "as-groups", "as-user-extra"}
_OTHER_ROUTES = {"proxy-url", "tls-server-name"}
_PROXIES = ("http", "https")


class KeyRefused(BackendError):
    """It can never be used. `part`: what of it is at fault (`server`, `authority`, `token`), empty for the whole."""

    def __init__(self, sentence: str, part: str = "") -> None:
        super().__init__(sentence)
        self.part = part


@dataclass(frozen=True, slots=True)
class ClusterKey:
    """A server and what proves who we are. `user`: the name that a kubeconfig gives it. Certificates are PEM texts."""

    server: str
    user: str = ""
    authority: str = ""
    token: str = field(default="", repr=False)
    certificate: str = ""
    private: str = field(default="", repr=False)

    def encode(self) -> str:
        """All of it, to be kept where nobody reads it."""
        return json.dumps(asdict(self))

    def context(self) -> ssl.SSLContext:
        """How its server is checked, and our certificate shown. Raises KeyRefused."""
        try:
            context = ssl.create_default_context(cadata=self.authority or None)
        except (ssl.SSLError, ValueError):
            sentence = translate("Cannot read the CA certificate. Use PEM format.")
            raise KeyRefused(sentence, "authority") from None
        if self.certificate:
            _show(context, f"{self.certificate}\n{self.private}")
        return context


def decode(text: str) -> ClusterKey:
    """What `ClusterKey.encode` made. Raises KeyRefused where it cannot be read any more."""
    try:
        return ClusterKey(**json.loads(text))
    except (TypeError, ValueError):
        sentence = translate(
            "The credentials of this cluster cannot be decrypted: the secret key of this console has changed. "
            "Replace the credentials."
        )
        raise KeyRefused(sentence) from None


def from_token(server: str, authority: str, token: str) -> ClusterKey:
    """The key that such a token is. Raises KeyRefused, which names the part at fault."""
    if "PRIVATE KEY" in authority:
        raise KeyRefused(translate("This file has a private key. Enter the certificate only."), "authority")
    key = ClusterKey(_checked_server(server), authority=authority.strip(), token=_checked_token(token))
    if not key.token:
        raise KeyRefused(translate("Enter a token."), "token")
    key.context()
    return key


def from_kubeconfig(text: str) -> ClusterKey:
    """The key in its current context. Raises KeyRefused, without a word of what is in it but names of fields."""
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
    """The user of this context in an operator's own file, or of its current context.

    Refused is what the official client would leave out in silence, or do without checking whom it talks to. Raises
    KeyRefused, or another error where it is no kubeconfig.
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
    """The cluster, the user and the user's name."""
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
    """The client knows OIDC only, and where no certificate is named, it would not check whom it sends its secrets."""
    if provider["name"] != "oidc":
        raise _unknown_sign_in(f"auth-provider: {provider['name']}"[:100])
    if not provider["config"].keys() & {"idp-certificate-authority", "idp-certificate-authority-data"}:
        sentence = translate(
            "The kubeconfig signs in by OIDC; name the certificate of its provider too (“{field}”).",
            field="idp-certificate-authority",
        )
        raise KeyRefused(sentence)


def _checked_server(text: str) -> str:
    """An address to which nothing but paths is added, and that may be shown. Raises KeyRefused."""
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
    """The token as a header holds it. Raises ValueError here, since the error of sending it would show it."""
    found = token.strip()
    if not found.isascii() or not found.isprintable() or " " in found:
        raise ValueError("The token has letters that no token has")
    return found


def _show(context: ssl.SSLContext, certificate: str) -> None:
    """The library takes it from a file only: one that is there for a moment, for our eyes.

    The password is for keys that want one, which nobody could be asked for.
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
    """A field as it stands there. Raises TypeError for what is no text: as a text it would be another."""
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
