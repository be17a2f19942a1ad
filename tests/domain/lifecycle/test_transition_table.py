"""The table of transitions in the README."""

from tests.domain.lifecycle import transition_table as table

from hekla.lib.checkout import CHECKOUT

README = CHECKOUT / "platform" / "hekla" / "domain" / "README.md"


def test_documented_table_equals_the_transitions():
    """After a change of the transitions, copy the output of `transition_table.markdown()` into the README."""
    assert table.markdown() in README.read_text(encoding="utf-8"), f"\n{table.markdown()}"
