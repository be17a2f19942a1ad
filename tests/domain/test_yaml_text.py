"""Untrusted YAML is read or refused with a reason, at bounded cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.domain import yaml_text
from hekla.domain.errors import Invalid

LAUGHS = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x" * 10_000_000, "The text has 9.5 MiB. The limit is 1 MiB."),
        (b"x" * 10_000_000, "The text has 9.5 MiB"),
        ("[" * 500_000, "nested more than 64 levels"),
        ("- " * 500_000, "nested more than 64 levels"),
        ("{" * 100_000 + "a", "nested more than 64 levels"),
        (LAUGHS, "more than 100,000 entries"),
        ("- x\n" * 200_000, "more than 100,000 entries"),
        ("a: &a [*a]", "refers to itself"),
        ("a: *b", "is undefined"),
        ("a: [1,\nb: }", "Line 2, column 4: invalid YAML"),
        ("a:\n\t- b", "Line 2, column 1"),
        ("a: 1\nb: 2\na: 3", "Line 3, column 1: duplicate key “a”."),
        ("!!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("{a: b}: 1", "unhashable"),
        ("a: \0", "control characters"),
        (b"\xff\xfe", "Not UTF-8 text: byte 1"),
        ("a: " + "9" * 5_000, "Invalid YAML"),
    ],
    ids=range(17),
)
def test_invalid_or_expensive_text_is_refused(text, sentence):
    with pytest.raises(Invalid) as raised:
        yaml_text.read(text)
    assert sentence in raised.value.message


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("22:30", "22:30"),
        ("2026-01-31", "2026-01-31"),
        ("1_000", "1_000"),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        ("-3", -3),
        ("0x1F", 31),
        ("true", True),
        ("~", None),
        ("1.2.3", "1.2.3"),
        ("1Gi", "1Gi"),
    ],
)
def test_plain_scalars(word, value):
    assert yaml_text.read(f"a: {word}") == [{"a": value}]


def test_aliases_and_merge_keys():
    assert yaml_text.read("a: &a {x: 1, y: 1}\nb: {<<: *a, y: 2}")[0]["b"] == {"x": 1, "y": 2}


def test_empty_documents_and_a_byte_order_mark_are_skipped():
    assert yaml_text.read(b"\xef\xbb\xbf---\n---\na: 1\n---\n") == [{"a": 1}]


@pytest.mark.parametrize(
    "text", ["0E0", "1e3", "0o17", "09", "0x1F", "22:30", "true", "no", "~", "", " a", "a: b", "\x85"]
)
def test_ambiguous_text_stays_text(text):
    assert yaml_text.read(yaml_text.write([{"a": text}])) == [{"a": text}]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "<<x", "1"]), VALUES, min_size=1))
def test_round_trip(document):
    assert yaml_text.read(yaml_text.write([document])) == [document]


@given(st.text() | st.binary())
def test_any_text_is_read_or_refused(text):
    assert isinstance(outcome(text), list) or len(outcome(text)) == 1


plain = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=100)


def lists_and_mappings(children):
    return st.lists(children, max_size=4) | st.dictionaries(plain.filter(bool), children, max_size=4)


@given(st.recursive(plain | st.none() | st.booleans() | st.integers() | st.floats(), lists_and_mappings, max_leaves=12))
def test_plain_texts_are_written_alike_by_both_writers(data):
    document = {"data": data}
    assert yaml_text._is_plain([document])
    quick = yaml_text.write([document, document])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_text, "_is_plain", lambda _data: False)
        assert yaml_text.write([document, document]) == quick


@pytest.mark.parametrize("text", ["two\nlines", "é", "\t", "a" * 101])
def test_other_texts_are_left_to_the_usual_writer(text):
    assert not yaml_text._is_plain([{"data": [text]}])
    assert not yaml_text._is_plain([{text: 1}])


def outcome(text):
    try:
        return yaml_text.read(text)
    except Invalid as error:
        return error.problems
