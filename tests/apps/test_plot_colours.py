"""The colours of plots can be told apart, also without one kind of cones. No pattern or word is counted here."""

from itertools import combinations

import pytest
from tests.support.colours import VISIONS, distance, distance_of_labs

from hekla.apps.measures import job_labels, labels
from hekla.pages.frame.plots import THEMES
from hekla.pages.operations import queue_figures

LEAST = 10
"""CIEDE2000."""
PALETTES = {
    **{f"lines, {name}": theme.lines for name, theme in THEMES.items()},
    "classes of GPU time": tuple(labels.COLOURS.values()),
    "results": tuple(job_labels.RESULT_COLOURS.values()),
    "causes": tuple(job_labels.CAUSE_COLOURS.values()),
    "queues": queue_figures.COLOURS,
}


@pytest.mark.parametrize(
    ("one", "other", "want"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
        ((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373),
    ],
)
def test_distances_are_those_of_the_published_pairs(one, other, want):
    """From the supplement of Sharma, Wu and Dalal (2005)."""
    assert round(distance_of_labs(one, other), 4) == want


@pytest.mark.parametrize("name", PALETTES)
def test_any_two_colours_of_a_palette_differ_clearly(name):
    """All pairs: where a part has no values, those beside it are neighbours."""
    near = [
        (one, other, vision, round(found, 1))
        for vision in VISIONS
        for one, other in combinations(PALETTES[name], 2)
        if (found := distance(one, other, vision)) < LEAST
    ]
    assert near == []
