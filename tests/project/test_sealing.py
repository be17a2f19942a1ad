"""What is sealed can be opened with its key, with none other, and not when it was changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.lib.encryption import Cipher, DecryptionError


@given(st.text())
def test_what_is_sealed_comes_out_again(text: str) -> None:
    seal = Cipher(["one"], "test")
    sealed = seal.close(text)
    assert seal.open(sealed) == text
    assert Cipher(["two", "one"], "test").open(sealed) == text


@pytest.mark.parametrize("other", [Cipher(["two"], "test"), Cipher(["one"], "other")])
def test_another_key_opens_nothing(other: Cipher) -> None:
    with pytest.raises(DecryptionError):
        other.open(Cipher(["one"], "test").close("open-sesame"))


def test_what_was_changed_is_not_opened() -> None:
    seal = Cipher(["one"], "test")
    sealed = seal.close("open-sesame")
    with pytest.raises(DecryptionError):
        seal.open(sealed[:-2] + bytes([sealed[-2] ^ 1]) + sealed[-1:])
