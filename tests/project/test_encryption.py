"""What is sealed can be opened with its key, with none other, and not when it was changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.lib.encryption import Cipher, DecryptionError


@given(st.text())
def test_what_is_sealed_comes_out_again(text: str) -> None:
    seal = Cipher(["one"], "test")
    sealed = seal.encrypt(text)
    assert seal.decrypt(sealed) == text
    assert Cipher(["two", "one"], "test").decrypt(sealed) == text


@pytest.mark.parametrize("other", [Cipher(["two"], "test"), Cipher(["one"], "other")])
def test_another_key_opens_nothing(other: Cipher) -> None:
    with pytest.raises(DecryptionError):
        other.decrypt(Cipher(["one"], "test").encrypt("open-sesame"))


def test_what_was_changed_is_not_opened() -> None:
    seal = Cipher(["one"], "test")
    sealed = seal.encrypt("open-sesame")
    with pytest.raises(DecryptionError):
        seal.decrypt(sealed[:-2] + bytes([sealed[-2] ^ 1]) + sealed[-1:])
