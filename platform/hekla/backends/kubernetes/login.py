"""Sign in to an API server with the official client. The result is a `Login`.

A kubeconfig here is an operator's own file: it may run a sign-in program (an exec plugin), name other files, use an
identity provider (OIDC) and a proxy. Kubeconfigs that people enter in a browser are never read here; see `keys`.
"""

import os
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
from kubernetes.config.incluster_config import SERVICE_HOST_ENV_NAME
from urllib3.util import make_headers

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import instruments, keys
from hekla.backends.kubernetes.answer_limits import limit_answers
from hekla.backends.kubernetes.deadline import Deadline
from hekla.backends.kubernetes.keys import ClusterKey, KeyRefused
from hekla.domain import yaml_text
from hekla.domain.translation import translate

MAX_FILE_BYTES = 1024 * 1024
"""An operator's own file may hold many clusters."""
MAX_CONNECTIONS = 32
_REFRESH_SECONDS = 20
_REFRESH_CHECK_SECONDS = 10.0
"""The shortest time between two checks whether a token expires soon. A program with short-lived tokens (the client
renews them five minutes early) runs as often.
"""


class Login:
    """An API server and our credentials there. `repr` does not show them."""

    def __init__(self, configuration: Configuration, context: ssl.SSLContext) -> None:
        configuration.connection_pool_maxsize = MAX_CONNECTIONS
        configuration.retries = False  # a failed request may still have had its effect
        _send_proxy_password(configuration)
        self.configuration, self._context = configuration, context
        self.server: str = configuration.host.rstrip("/")
        self._refresh = _TokenRefresh(configuration) if configuration.refresh_api_key_hook else None
        self.aiohttp_options = self._aiohttp_options()

    @property
    def is_refresh_due(self) -> bool:
        """Whether `header` may run a program, read a file or call an identity provider."""
        return self._refresh is not None and self._refresh.is_due

    def header(self) -> dict[str, str]:
        """The authentication header; empty if we use a certificate. Raises BackendError."""
        try:
            found = self.configuration.auth_settings().get("BearerToken", {}).get("value")
            scheme, _space, token = (found or "").partition(" ")
            return {"Authorization": f"{scheme} {keys.sendable(token)}"} if token else {}
        except BackendError:
            raise
        except Exception as error:  # any error of a file or an identity provider; its text may contain a token
            raise BackendError(f"The token cannot be refreshed: {type(error).__name__}") from None

    def new_client(self) -> ApiClient:
        """A new official client, with its own connection pool."""
        client = _CountedClient(self.configuration)
        files = dict.fromkeys(("ca_certs", "ca_cert_data", "cert_file", "key_file"))
        # One context for all connections, or each would read the files again.
        client.rest_client.pool_manager.connection_pool_kw |= {**files, "ssl_context": self._context}
        limit_answers(client.rest_client.pool_manager)
        return client

    def _aiohttp_options(self) -> Mapping[str, Any]:
        """Options for aiohttp requests: the same TLS context, proxy and server name."""
        options: dict[str, Any] = {"ssl": self._context}
        if isinstance(ApiClient(self.configuration).rest_client.pool_manager, urllib3.ProxyManager):
            options |= {"proxy": self.configuration.proxy, "proxy_headers": self.configuration.proxy_headers}
        if self.configuration.tls_server_name:
            options["server_hostname"] = self.configuration.tls_server_name
        return options


class _CountedClient(ApiClient):  # type: ignore[misc]
    """Counts typed requests in the same metric as other requests."""

    def call_api(self, method: str, url: str, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        instruments.count(method, urlsplit(url).path)
        return super().call_api(method, url, *args, **options)


class _TokenRefresh:
    """The client's own token refresh, in one thread at a time, and not checked at each request."""

    def __init__(self, configuration: Configuration) -> None:
        self._hook: Callable[[Configuration], None] = configuration.refresh_api_key_hook
        self._lock, self._deadline = threading.Lock(), Deadline(_REFRESH_SECONDS)
        self._checked_at = time.monotonic()
        configuration.refresh_api_key_hook = self

    @property
    def is_due(self) -> bool:
        return time.monotonic() - self._checked_at >= _REFRESH_CHECK_SECONDS

    def __call__(self, configuration: Configuration) -> None:
        if not self.is_due:
            return
        with self._lock:
            if self.is_due:
                try:
                    self._deadline.run(lambda: self._call_hook(configuration))
                finally:
                    self._checked_at = time.monotonic()

    def _call_hook(self, configuration: Configuration) -> None:
        try:
            self._hook(configuration)
        finally:
            configuration.refresh_api_key_hook = self  # the client has reset it to its own


def by_key(key: ClusterKey) -> Login:
    """Sign in with stored credentials. Raises KeyRefused."""
    configuration = Configuration(host=key.server)
    if key.token:
        configuration.api_key["BearerToken"] = f"Bearer {key.token}"
    return Login(configuration, key.context())


def by_account() -> Login:
    """Sign in with the service account of our pod. Raises KeyRefused outside of a cluster."""
    configuration = Configuration()
    try:
        load_incluster_config(configuration)
        return Login(configuration, _tls_context(configuration))
    except (ConfigException, OSError) as error:
        if not os.environ.get(SERVICE_HOST_ENV_NAME):
            raise KeyRefused(translate("This console does not run in a cluster. Enter a kubeconfig.")) from None
        raise KeyRefused(translate("Cannot read the service account of this console: {why}.", why=error)) from error


def by_kubeconfig(path: Path, context: str) -> Login:
    """Sign in with this context of an operator's file; empty: its current one.

    Raises KeyRefused; of the file's content, messages show only field names.
    """
    try:
        return _by_kubeconfig(path, context)
    except OSError as error:
        sentence = translate("Cannot read the kubeconfig {name}: {why}.", name=path.name, why=error.strerror)
        raise KeyRefused(sentence) from error
    except KeyRefused as refusal:
        raise KeyRefused(translate("The file {name}: {why}", name=path.name, why=str(refusal))) from None
    except Exception:  # the client raises any error here, and its text may show the content of the file
        why = translate("Invalid kubeconfig.")
        raise KeyRefused(translate("The file {name}: {why}", name=path.name, why=why)) from None


def _by_kubeconfig(path: Path, context: str) -> Login:
    text = path.read_text(encoding="utf-8")
    if len(text.encode()) > MAX_FILE_BYTES:
        raise KeyRefused(translate("The kubeconfig is larger than {kib} KiB.", kib=MAX_FILE_BYTES // 1024))
    (document,) = yaml_text.read(text)
    user = keys.check_operators(document, context)
    configuration = Configuration()
    load_kube_config(str(path), context=context or None, client_configuration=configuration)
    if "exec" in user and not (configuration.api_key or configuration.cert_file):
        raise KeyRefused(translate("The sign-in program returned no credentials. The log says why."))
    found = Login(configuration, _tls_context(configuration))
    found.header()  # raises for a token that is invalid in a header
    return found


def _send_proxy_password(configuration: Configuration) -> None:
    """Send the user name and password in the proxy's address as a header, because the client ignores them."""
    password, at, place = (configuration.proxy or "").rpartition("@")
    if at:
        scheme, _, password = password.rpartition("://")
        configuration.proxy = f"{scheme}://{place}"
        configuration.proxy_headers = make_headers(proxy_basic_auth=unquote(password))


def _tls_context(configuration: Configuration) -> ssl.SSLContext:
    """The TLS context. The client's own would prompt at the terminal for the password of an encrypted key."""
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file, password="")
    return context
