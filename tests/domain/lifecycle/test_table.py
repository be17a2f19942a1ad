"""The table of transitions in the documents."""

from tests.domain.lifecycle import transition_table as table

from hekla.lib.checkout import CHECKOUT

README = CHECKOUT / "platform" / "hekla" / "domain" / "README.md"


def test_the_documented_table_is_that_of_the_program():
    """After a change of the table, put what `transition_table.markdown()` gives into the README."""
    assert table.markdown() in README.read_text(encoding="utf-8"), f"\n{table.markdown()}"
