"""Whatever goes wrong is said in a sentence, never as a traceback."""

import socket

import pytest
from tests.cli.conftest import hekla

local = pytest.mark.parametrize("world", ["local"], indirect=True)


def told(result):
    assert result.exit_code == 1, result.output
    assert result.output.startswith("Error: "), result.output
    return result.output


def test_nobody_answers():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        assert f"Nobody answers at {url}" in told(hekla("--server", url, "--token", "x", "job", "list"))


@pytest.mark.parametrize("url", ["http://", "http://[", "ftp://127.0.0.1", "http://127.0.0.1:99999", "http://a b"])
def test_an_address_that_is_none(url):
    told(hekla("--server", url, "--token", "x", "job", "list"))


def test_without_a_token_one_is_told_where_to_get_it():
    assert "hekla login http://127.0.0.1:9" in told(hekla("--server", "http://127.0.0.1:9", "job", "list"))


@local
def test_a_wrong_token(console):
    assert "hekla login" in told(hekla("--server", console.url, "--token", "hk_wrong", "job", "list"))


@local
def test_a_page_that_is_not_hekla(console):
    assert "not Hekla" in told(hekla("--server", f"{console.url}/nowhere", "--token", console.token, "job", "list"))


@local
@pytest.mark.parametrize("words", [["show"], ["logs"], ["abort"], ["delete"], ["watch"], ["clone", "--name", "x"]])
@pytest.mark.parametrize("name", ["nothing", "9b0dc0f2-0000-4000-8000-000000000000"])
def test_a_job_that_does_not_exist(console, words, name):
    assert "Unknown job" in told(console("job", *words, name))


@local
def test_a_refusal_of_the_console_names_the_field(console, manifest):
    output = told(console("job", "submit", manifest(), "--queue", "nowhere"))
    assert "Lab cannot use a queue “nowhere”." in output
    too_large = manifest()
    too_large.write_text(too_large.read_text().replace("100m", "64"))
    assert "tasks.0.resources.cpu: " in told(console("job", "submit", too_large))


@pytest.mark.parametrize(
    ("text", "words"),
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
def test_a_manifest_that_is_wrong(tmp_path, text, words):
    path = tmp_path / "job.yaml"
    path.write_text(text)
    assert words in told(hekla("job", "submit", path))


def test_a_manifest_that_is_not_there(tmp_path):
    assert "cannot be read" in told(hekla("job", "submit", tmp_path / "none.yaml"))


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/hostname", "none.txt", "link.txt", "."])
def test_only_files_beside_the_manifest_go_along(tmp_path, manifest, name):
    (tmp_path.parent / "secret.txt").write_text("secret")
    (tmp_path / "link.txt").symlink_to(tmp_path.parent / "secret.txt")
    path = manifest(extra=f", annotations: {{hekla.io/files: {name}}}")
    assert f"no file “{name}” beside" in told(hekla("job", "submit", path))


@pytest.mark.parametrize(("data", "words"), [(b"\xff\xfe", "not UTF-8"), (b"x" * 300_000, "more than 256 KiB")])
def test_files_that_cannot_go_along_are_named(tmp_path, manifest, data, words):
    (tmp_path / "train.py").write_bytes(data)
    assert words in told(hekla("job", "submit", manifest(command="[python, train.py]")))
