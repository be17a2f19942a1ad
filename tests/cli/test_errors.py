"""Errors are printed as sentences, never as tracebacks."""

import socket

import pytest
from tests.cli.conftest import hekla

local = pytest.mark.parametrize("world", ["local"], indirect=True)


def error_of(result):
    assert result.exit_code == 1, result.output
    assert result.output.startswith("Error: "), result.output
    return result.output


def test_unreachable_console():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        assert f"Cannot connect to {url}" in error_of(hekla("--server", url, "--token", "x", "job", "list"))


@pytest.mark.parametrize("url", ["http://", "http://[", "ftp://127.0.0.1", "http://127.0.0.1:99999", "http://a b"])
def test_invalid_address(url):
    error_of(hekla("--server", url, "--token", "x", "job", "list"))


def test_missing_token_error_names_the_login_command():
    assert "hekla login http://127.0.0.1:9" in error_of(hekla("--server", "http://127.0.0.1:9", "job", "list"))


@local
def test_wrong_token(console):
    assert "hekla login" in error_of(hekla("--server", console.url, "--token", "hk_wrong", "job", "list"))


@local
def test_other_server(console):
    assert "not Hekla" in error_of(hekla("--server", f"{console.url}/nowhere", "--token", console.token, "job", "list"))


@local
@pytest.mark.parametrize("command", [["show"], ["logs"], ["abort"], ["delete"], ["watch"], ["clone", "--name", "x"]])
@pytest.mark.parametrize("name", ["nothing", "9b0dc0f2-0000-4000-8000-000000000000"])
def test_unknown_job(console, command, name):
    assert "Unknown job" in error_of(console("job", *command, name))


@local
def test_refusals_name_the_field(console, manifest):
    output = error_of(console("job", "submit", manifest(), "--queue", "nowhere"))
    assert "Lab cannot use a queue “nowhere”." in output
    too_large = manifest()
    too_large.write_text(too_large.read_text().replace("100m", "64"))
    assert "tasks.0.resources.cpu: " in error_of(console("job", "submit", too_large))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "nvalid YAML"),
        ("", "no job"),
        ("kind: Deployment", "no job"),
        ("- 1", "must be a mapping"),
        ("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec: {minAvailable: x}", "spec.minAvailable"),
        ("\0", "nvalid YAML"),
        ("x: " + "y" * 2_000_000, "The limit is 1 MiB"),
        ("name: x\ntasks: [{name: a, command: [true], replicas: two}]", "tasks.0.replicas"),
    ],
)
def test_invalid_manifest(tmp_path, text, message):
    path = tmp_path / "job.yaml"
    path.write_text(text)
    assert message in error_of(hekla("job", "submit", path))


def test_missing_manifest(tmp_path):
    assert "cannot be read" in error_of(hekla("job", "submit", tmp_path / "none.yaml"))


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/hostname", "none.txt", "link.txt", "."])
def test_only_files_beside_the_manifest_are_uploaded(tmp_path, manifest, name):
    (tmp_path.parent / "secret.txt").write_text("secret")
    (tmp_path / "link.txt").symlink_to(tmp_path.parent / "secret.txt")
    path = manifest(extra=f", annotations: {{hekla.io/files: {name}}}")
    assert f"no file “{name}” beside" in error_of(hekla("job", "submit", path))


@pytest.mark.parametrize(("data", "message"), [(b"\xff\xfe", "not UTF-8"), (b"x" * 300_000, "more than 256 KiB")])
def test_unsuitable_files_are_named(tmp_path, manifest, data, message):
    (tmp_path / "train.py").write_bytes(data)
    assert message in error_of(hekla("job", "submit", manifest(command="[python, train.py]")))
