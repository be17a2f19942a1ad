"""What holds for every test."""

from collections.abc import Iterator

import pytest
from django.utils import translation


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """No test speaks the language that the one before it asked the console for."""
    with translation.override("en"):
        yield
