"""Encryption: only the right key decrypts, and changed data are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.lib.encryption import Cipher, DecryptionError


@given(st.text())
def test_encrypted_text_is_decrypted(text: str) -> None:
    cipher = Cipher(["one"], "test")
    encrypted = cipher.encrypt(text)
    assert cipher.decrypt(encrypted) == text
    assert Cipher(["two", "one"], "test").decrypt(encrypted) == text


@pytest.mark.parametrize("other", [Cipher(["two"], "test"), Cipher(["one"], "other")])
def test_another_key_does_not_decrypt(other: Cipher) -> None:
    with pytest.raises(DecryptionError):
        other.decrypt(Cipher(["one"], "test").encrypt("open-sesame"))


def test_changed_data_are_refused() -> None:
    cipher = Cipher(["one"], "test")
    encrypted = cipher.encrypt("open-sesame")
    with pytest.raises(DecryptionError):
        cipher.decrypt(encrypted[:-2] + bytes([encrypted[-2] ^ 1]) + encrypted[-1:])
