"""A pytest plugin: tests marked `thorough` run only in a whole run (`HEKLA_EXAMPLES=1`), or when they are named.

Each is costly, and a cheaper test covers the same code: a longer fault, a further size or scheme, another way of
installing. They are deselected, not skipped: nothing is missing on this machine.
"""

import pytest
from tests.support.examples import EVERY


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the thorough tests."""
    if EVERY == 1 or any("::" in argument for argument in config.args):
        return
    late = [item for item in items if item.get_closest_marker("thorough")]
    if late:
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
