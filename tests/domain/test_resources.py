"""Resource quantities: parsing, formatting and arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hekla.domain.resources import InvalidQuantity, Resources, format_quantity, parse_quantity


@pytest.mark.parametrize(
    ("name", "text", "amount"),
    [
        ("cpu", "2", 2000),
        ("cpu", "250m", 250),
        ("cpu", 0.5, 500),
        ("nvidia.com/gpu", "1", 1000),
        ("memory", "4Gi", 4 * 2**30),
        ("memory", "1M", 10**6),
        ("pods", 110, 110),
    ],
)
def test_quantities_are_read_in_internal_units(name, text, amount):
    assert parse_quantity(name, text) == amount


@pytest.mark.parametrize("text", ["", "lots", "-1", "1 Gi Gi", "1e3", "9" * 30, "1KB", "٣"])
def test_invalid_quantity_is_refused(text):
    with pytest.raises(InvalidQuantity):
        parse_quantity("cpu", text)


@given(st.sampled_from(["cpu", "memory", "pods"]), st.integers(1, 2**50))
def test_quantity_round_trip(name, amount):
    assert parse_quantity(name, format_quantity(name, amount)) == amount


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.integers(0, 10**6)).map(Resources)


@given(AMOUNTS, AMOUNTS)
def test_subtraction_is_the_inverse_of_addition(one, other):
    assert one + other - other == one
    assert one.fits_in(one + other)
    assert hash(one + other) == hash(other + one)


def test_missing_name_counts_as_zero():
    assert Resources({"cpu": 0}) == Resources()
    assert (Resources.parse({"cpu": "1"}) * 3).quantities() == {"cpu": "3"}
    assert not Resources.parse({"cpu": "1"}).fits_in(Resources())
