"""A command as one line of bash."""

import subprocess

from hypothesis import given
from hypothesis import strategies as st
from tests.support.examples import examples

from hekla.domain.shell_text import MAX_LINE, command_line

WORDS = st.lists(
    st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=4
)


@given(st.lists(WORDS, min_size=1, max_size=examples(20)))
def test_bash_reads_the_line_as_the_same_words(commands):
    lines = [command_line(tuple(words)) for words in commands]
    assert not any("\n" in line for line in lines)
    script = "".join(f"set -- {line}; printf '%s\\0' \"$@\"\n" for line in lines)
    found = subprocess.run(["bash", "-s"], input=script.encode(), capture_output=True, check=True).stdout
    assert found.decode().split("\0")[:-1] == [word for words in commands for word in words]


def test_line_that_no_variable_can_hold_is_empty():
    assert command_line(("sh", "-c", "x" * MAX_LINE)) == ""
