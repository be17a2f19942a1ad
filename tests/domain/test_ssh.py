"""SSH keys for the pods of a job: one valid pair per job, the same for all its pods."""

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.lifecycle.harness import spec

from hekla.domain import frameworks
from hekla.domain.errors import Invalid
from hekla.domain.frameworks import settings_for
from hekla.lib.sshkeys import key_pair

HOSTS = {("task0", 0): "127.1.0.1", ("task0", 1): "127.1.0.2"}
JOB = spec({"replicas": 2}, plugins={"ssh": ["--ssh-port=2022"]})
SECRET = hashlib.sha256(b"of this job").digest()


@pytest.mark.parametrize(
    ("private", "public"),
    [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        ),
    ],
)
def test_public_keys_equal_the_rfc(private, public):
    """The first three test vectors of RFC 8032 §7.1."""
    pair = key_pair(bytes.fromhex(private), "")
    assert base64.b64decode(pair.public.split()[1])[-32:].hex() == public


@settings(max_examples=20, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.text(alphabet="abc-", max_size=60))
def test_private_key_is_in_openssh_format(seed, comment):
    pair = key_pair(seed, comment)
    private = load_ssh_private_key(pair.private.encode(), password=None)
    assert private.private_bytes_raw() == seed
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    assert pair.public.split()[:2] == public.decode().split()


def test_pods_have_the_same_keys_and_host_entries():
    first, second = (settings_for(JOB, "task0", index, HOSTS, SECRET) for index in range(2))
    assert first.secrets == second.secrets
    assert first.secrets[".ssh/authorized_keys"] == first.secrets[".ssh/id_ed25519.pub"]
    assert "Host job-task0-1 job-task0-1.job\n  HostName 127.1.0.2\n  Port 2022\n" in first.secrets[".ssh/config"]
    assert first.secrets != settings_for(JOB, "task0", 0, HOSTS, hashlib.sha256(b"other").digest()).secrets


def test_key_path_is_an_argument():
    pod_settings = settings_for(JOB, "task0", 0, HOSTS, SECRET)
    elsewhere = JOB.model_copy(update={"plugins": {"ssh": ["--ssh-key-file-path=/home/mpi/.ssh"]}})
    custom_settings = settings_for(elsewhere, "task0", 0, HOSTS, SECRET)
    assert (pod_settings.mounts, custom_settings.mounts) == ({"/root/.ssh": ".ssh"}, {"/home/mpi/.ssh": ".ssh"})
    assert "  IdentityFile /home/mpi/.ssh/id_ed25519\n" in custom_settings.secrets[".ssh/config"]


@pytest.mark.parametrize("path", ["", "keys", "/", "/a/../b", "/a b", "/a\n  ProxyCommand x"])
def test_invalid_key_path_is_refused(path):
    with pytest.raises(Invalid):
        spec({"replicas": 2}, plugins={"ssh": [f"--ssh-key-file-path={path}"]})


def test_keys_are_only_in_the_secrets():
    pod_settings = settings_for(JOB, "task0", 0, HOSTS, SECRET)
    assert not pod_settings.files
    assert "PRIVATE" not in repr(pod_settings)
    assert frameworks.files(JOB) == {".ssh/id_ed25519", ".ssh/id_ed25519.pub", ".ssh/authorized_keys", ".ssh/config"}
