"""A kubeconfig that cannot be used is told of in a sentence, which shows nothing of what is in it."""

import copy
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import access
from hekla.backends.kubernetes.api import Api

SECRET = "abcdefgh-the-token"
GOOD: dict[str, Any] = {
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": SECRET}}],
}


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    document = copy.deepcopy(GOOD)
    change(document)
    return yaml.safe_dump(document)


BAD = {
    "a user that is a word": changed(lambda all_: all_["users"][0].update(user=SECRET)),
    "a cluster that is a word": changed(lambda all_: all_["clusters"][0].update(cluster=SECRET)),
    "contexts that are words": changed(lambda all_: all_.update(contexts=[SECRET])),
    "a document that is a word": SECRET,
    "a document that is a list": f"[{SECRET}]",
    "a token of two lines": changed(lambda all_: all_["users"][0].update(user={"token": f"{SECRET}\n{SECRET}"})),
    "a token of odd letters": changed(lambda all_: all_["users"][0].update(user={"token": f"{SECRET}é"})),
    "a server that has no number": changed(lambda all_: all_["clusters"][0]["cluster"].update(server="https://x:y")),
    "what goes on for ever": "[" * 100_000,
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_kubeconfig_is_told_in_a_sentence_without_its_content(case, tmp_path) -> None:
    path = tmp_path / "mine"
    path.write_text(BAD[case])
    with pytest.raises(BackendError) as refusal:
        access.from_kubeconfig(path)
    assert "mine" in str(refusal.value)
    assert SECRET not in str(refusal.value)


def test_a_token_may_stand_in_a_block_that_ends_with_a_line_feed(tmp_path) -> None:
    path = tmp_path / "mine"
    path.write_text(changed(lambda all_: all_["users"][0].update(user={"token": f"{SECRET}\n"})))
    assert access.from_kubeconfig(path).header() == {"Authorization": f"Bearer {SECRET}"}


@pytest.fixture
def found(control_plane: ControlPlane, tmp_path: Path) -> access.Access:
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(control_plane.kubeconfig()))
    return access.from_kubeconfig(path)


@pytest.mark.parametrize("content", [None, f"{SECRET}\n{SECRET}", f"{SECRET}é"])
def test_a_token_file_that_cannot_be_used_now_is_an_error_that_passes_and_shows_nothing(
    content, found, tmp_path
) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
    api = Api(dataclasses.replace(found, token_file=token))
    with pytest.raises(BackendError) as refusal:
        api.get("/api/v1/namespaces")
    assert SECRET not in str(refusal.value)
    api.close()


def test_a_console_in_the_cluster_has_the_account_of_its_pod(
    control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = httpx2.URL(control_plane.url)
    monkeypatch.setattr(access, "_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", server.host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    (tmp_path / "token").write_text(control_plane.token)
    with pytest.raises(BackendError, match="service account"):
        access.find(tmp_path, "", None)
    (tmp_path / "ca.crt").write_text(control_plane.ca.read_text())
    api = Api(access.find(tmp_path, "", None))
    assert api.get("/api/v1/namespaces")["items"]
    api.close()
