"""What opens an API server, read from what people have: a kubeconfig, or an address with a token.

Of a kubeconfig only its current context is taken, and of that only what is data: a server, certificates, a token. What
wants a program run to sign in, names files, or asks for what is not done here is refused: whoever may give a key must
not thereby run programs or read files of this machine, and nothing that was asked is left out in silence.
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
_OTHER_WAYS_IN = {"exec", "auth-provider", "tokenFile", "username", "password"}
_IN_ANOTHERS_NAME = {"as", "as-uid", "as-groups", "as-user-extra"}
_OTHER_WAYS_THERE = {"proxy-url", "tls-server-name"}


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
            sentence = translate("The certificate of the authority cannot be read; give it as PEM.")
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
            "The key to this cluster cannot be read: the console's own secret was changed. Replace the key."
        )
        raise KeyRefused(sentence) from None


def from_token(server: str, authority: str, token: str) -> ClusterKey:
    """The key that such a token is. Raises KeyRefused, which names the part at fault."""
    if "PRIVATE KEY" in authority:
        raise KeyRefused(translate("This holds a private key; only the certificate is wanted."), "authority")
    key = ClusterKey(_checked_server(server), authority=authority.strip(), token=_checked_token(token))
    if not key.token:
        raise KeyRefused(translate("A token is needed."), "token")
    key.context()
    return key


def from_kubeconfig(text: str, *, most: int = MAX_BYTES) -> ClusterKey:
    """The key in its current context. Raises KeyRefused, without a word of what is in it but names of fields.

    `most`: how many bytes it may have.
    """
    if len(text.encode()) > most:
        raise KeyRefused(translate("A kubeconfig has at most {kib} KiB.", kib=most // 1024))
    try:
        (document,) = yaml_text.read(text)
        key = _current(document)
    except _NO_KUBECONFIG:
        raise KeyRefused(translate("This is no kubeconfig that can be used here.")) from None
    key.context()
    return key


def _current(document: Mapping[str, Any]) -> ClusterKey:
    context = _named(document["contexts"], document["current-context"])["context"]
    cluster = _named(document["clusters"], context["cluster"])["cluster"]
    user = _named(document["users"], context["user"])["user"] or {}
    _refuse_what_is_not_done(cluster, user)
    return ClusterKey(
        server=_checked_server(_text(cluster, "server")),
        user=str(context["user"])[:253],
        authority=_decoded(cluster, "certificate-authority-data"),
        token=_checked_token(_text(user, "token")),
        certificate=_decoded(user, "client-certificate-data"),
        private=_decoded(user, "client-key-data"),
    )


def _named(entries: list[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return {entry["name"]: entry for entry in entries}[name]


def _refuse_what_is_not_done(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> None:
    if odd := _OTHER_WAYS_IN & user.keys():
        raise KeyRefused(
            translate("The kubeconfig signs in by “{way}”; give it a token or a certificate.", way=min(odd))
        )
    if odd := _IN_ANOTHERS_NAME & user.keys():
        sentence = translate("The kubeconfig acts for somebody else (“{way}”), which is not done here.", way=min(odd))
        raise KeyRefused(sentence)
    if odd := {name for name in _OTHER_WAYS_THERE if cluster.get(name)}:
        sentence = translate("The kubeconfig asks for “{way}”, which is not done here; take it out.", way=min(odd))
        raise KeyRefused(sentence)
    if cluster.get("insecure-skip-tls-verify"):
        raise KeyRefused(translate("The kubeconfig does not check who the server is; give it the certificate."))


def _checked_server(text: str) -> str:
    """An address to which nothing but paths is added, and that may be shown. Raises KeyRefused."""
    server = text.strip().rstrip("/")
    if not server.startswith("https://"):
        raise KeyRefused(translate("The server is not reached by https; its address begins with https://."), "server")
    try:
        url = urlsplit(server)
        is_address = bool(url.hostname) and url.port != 0 and server.isascii() and server.isprintable()
    except ValueError:
        is_address = False
    if not is_address or " " in server or url.query or url.fragment or len(server) > MAX_SERVER:
        raise KeyRefused(translate("This is no address of a server."), "server")
    if "@" in url.netloc:
        raise KeyRefused(translate("The address of the server holds a name or a password; take it out."), "server")
    return server


def _checked_token(text: str) -> str:
    try:
        return sendable(text)
    except ValueError:
        raise KeyRefused(translate("This is no token: it has letters that no token has."), "token") from None


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
            sentence = translate("The certificate that the kubeconfig signs in with, or its key, cannot be read.")
            raise KeyRefused(sentence) from None


def _text(section: Mapping[str, Any], name: str) -> str:
    """A field as it stands there. Raises TypeError for what is no text: as a text it would be another."""
    found = section.get(name) or ""
    if not isinstance(found, str):
        raise TypeError(name)
    return found


def _decoded(section: Mapping[str, Any], name: str) -> str:
    if name.removesuffix("-data") in section:
        sentence = translate("The kubeconfig names files; write them into it (“{field}”).", field=name)
        raise KeyRefused(sentence)
    try:
        return base64.b64decode(_text(section, name), validate=True).decode("ascii")
    except binascii.Error as error:
        raise ValueError(name) from error
