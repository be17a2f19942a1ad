import time
from functools import partial

import pytest
from tests.examples.training import TIMEOUT_SECONDS, training


@pytest.fixture
def run_example(tmp_path):
    """A function that runs the processes of an example; they are killed at the end of the test."""
    return partial(training, folder=tmp_path)


@pytest.fixture
def until():
    """A function that waits until a condition holds."""

    def wait(condition):
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "it did not come"
            time.sleep(0.05)

    return wait
