import time
from functools import partial

import pytest
from tests.examples.training import PATIENCE_SECONDS, training


@pytest.fixture
def run_example(tmp_path):
    """Starts the processes of an example; whatever is left of them ends with the test."""
    return partial(training, folder=tmp_path)


@pytest.fixture
def until():
    """Waits for something to become true."""

    def wait(is_so):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < deadline, "it did not come"
            time.sleep(0.05)

    return wait
