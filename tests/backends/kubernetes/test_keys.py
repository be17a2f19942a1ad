"""Keys of clusters: what is accepted and refused, without the key in any message."""

import base64
import copy
import datetime
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.kubernetes import holders, keys
from hekla.backends.kubernetes.keys import ClusterKey, KeyRefused
from hekla.lib.checkout import CHECKOUT

SECRET = "abcdefgh-the-token"
SERVER = "https://127.0.0.1:1"
GOOD: dict[str, Any] = {
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": SERVER}}],
    "users": [{"name": "u", "user": {"token": SECRET}}, {"name": "other", "user": {"token": "of-another-cluster"}}],
}


def with_user(**fields: object) -> str:
    return _changed(lambda found: found["users"][0]["user"].update(fields))


def with_cluster(**fields: object) -> str:
    return _changed(lambda found: found["clusters"][0]["cluster"].update(fields))


def _changed(change: Callable[[dict[str, Any]], object]) -> str:
    document = copy.deepcopy(GOOD)
    change(document)
    return yaml.safe_dump(document)


REFUSED = {
    "a program": (with_user(exec={"command": "touch"}), "exec"),
    "a provider": (with_user(**{"auth-provider": {"name": "gcp"}}), "auth-provider"),
    "a file with the token": (with_user(tokenFile="/etc/shadow"), "tokenFile"),
    "a password": (with_user(username="u", password=SECRET), "password"),
    "another's name": (with_user(**{"as": "root"}), "“as”"),
    "a file with a certificate": (with_user(**{"client-certificate": "/etc/shadow"}), "client-certificate"),
    "a file with the authority": (with_cluster(**{"certificate-authority": "/etc/shadow"}), "certificate-authority"),
    "a proxy": (with_cluster(**{"proxy-url": "http://proxy:3128"}), "proxy-url"),
    "another name in the certificate": (with_cluster(**{"tls-server-name": "other"}), "tls-server-name"),
    "no check of the server": (with_cluster(**{"insecure-skip-tls-verify": True}), "does not verify"),
    "no https": (with_cluster(server="http://127.0.0.1:1"), "https"),
    "a password in the address": (with_cluster(server=f"https://u:{SECRET}@127.0.0.1:1"), "password"),
    "a question in the address": (with_cluster(server=f"{SERVER}?a={SECRET}"), "Invalid server address"),
    "a server that is a list": (with_cluster(server=[SECRET]), "Invalid kubeconfig"),
    "an authority that is none": (
        with_cluster(**{"certificate-authority-data": base64.b64encode(b"x").decode()}),
        "CA certificate",
    ),
    "a certificate that is none": (
        with_user(**{"client-certificate-data": base64.b64encode(b"x").decode()}),
        "client certificate",
    ),
    "too much": (f"# {'x' * keys.MAX_BYTES}\n{yaml.safe_dump(GOOD)}", "64 KiB"),
    "two documents": (f"{yaml.safe_dump(GOOD)}---\n{yaml.safe_dump(GOOD)}", "Invalid kubeconfig"),
    "nothing": ("", "Invalid kubeconfig"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_unusable_kubeconfig_is_refused_with_a_reason_and_without_its_content(case: str) -> None:
    text, reason = REFUSED[case]
    with pytest.raises(KeyRefused) as refusal:
        keys.from_kubeconfig(text)
    assert reason in str(refusal.value)
    assert SECRET not in str(refusal.value)


def test_only_the_current_context_is_stored() -> None:
    text = keys.from_kubeconfig(yaml.safe_dump(GOOD)).encode()
    assert SECRET in text
    assert "of-another-cluster" not in text


def test_stored_key_decodes_to_the_same_key_and_is_not_in_repr() -> None:
    key = keys.from_kubeconfig(yaml.safe_dump(GOOD))
    assert keys.decode(key.encode()) == key
    assert SECRET not in repr(key)
    for text in ("", "{}", '{"colour": "red"}'):
        with pytest.raises(KeyRefused):
            keys.decode(text)


PARTS = [
    ("http://far", "", SECRET, "server"),
    ("https://", "", SECRET, "server"),
    (SERVER, "nonsense", SECRET, "authority"),
    (SERVER, "-----BEGIN PRIVATE KEY-----", SECRET, "authority"),
    (SERVER, "", "", "token"),
    (SERVER, "", f"{SECRET} {SECRET}", "token"),
]


@pytest.mark.parametrize(("server", "authority", "token", "part"), PARTS)
def test_refusal_names_the_wrong_part(server: str, authority: str, token: str, part: str) -> None:
    with pytest.raises(KeyRefused) as refusal:
        keys.from_token(server, authority, token)
    assert refusal.value.part == part
    assert SECRET not in str(refusal.value)


def test_address_authority_and_token_make_a_key(control_plane: ControlPlane) -> None:
    key = keys.from_token(f" {control_plane.url}/ ", control_plane.ca.read_text(), f"{SECRET}\n")
    assert (key.server, key.token) == (control_plane.url, SECRET)


def _token(**claims: object) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in ({}, claims)]
    return ".".join([*parts, "signature"])


def test_holder_and_expiry_are_read_from_the_token() -> None:
    key = ClusterKey(SERVER, "u", token=_token(sub="system:serviceaccount:hekla:hekla", exp=1_800_000_000))
    assert holders.holder(key) == "system:serviceaccount:hekla:hekla"
    assert holders.valid_until(key) == datetime.datetime.fromtimestamp(1_800_000_000, datetime.UTC)


@pytest.mark.parametrize("token", [SECRET, "a.b.c", _token(sub=3, exp="x"), _token(exp=1e300), "..", ""])
def test_user_of_the_kubeconfig_is_the_holder_for_other_tokens(token: str) -> None:
    key = ClusterKey(SERVER, "u", token=token)
    assert (holders.holder(key), holders.valid_until(key)) == ("u", None)


def test_reading_keys_does_not_import_the_official_client() -> None:
    """The import takes half a second and 15 MB, also in processes that never reach a cluster."""
    modules = "hekla.backends.registry, hekla.backends.kubernetes.config, hekla.backends.kubernetes.holders"
    check = f"import sys, {modules}; sys.exit('kubernetes' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", check], env={"PYTHONPATH": str(CHECKOUT / "platform")}, check=False
        ).returncode
        == 0
    )
