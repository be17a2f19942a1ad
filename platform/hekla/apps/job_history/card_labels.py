"""Sentences about the cards of pods."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _


def cards(held: Sequence[Mapping[str, Any]]) -> str:
    """`Card 0, Card 1`, or `Card 0 (2048 of 8192 MiB)` for a part of one; empty without cards."""
    return _(", ").join(map(_card, held))


def details(held: Sequence[Mapping[str, Any]]) -> str:
    """Model and id of each card that has them, a card a line."""
    lines = (" ".join(filter(None, (card["resource"], str(card["index"]), card["model"], card["id"]))) for card in held)
    return "\n".join(lines)


def _card(card: Mapping[str, Any]) -> str:
    if not card["part_mib"]:
        return _("Card %(n)s") % {"n": card["index"]}
    if not card["memory_mib"]:
        return _("Card %(n)s (%(part)s MiB)") % {"n": card["index"], "part": card["part_mib"]}
    whole = {"n": card["index"], "part": card["part_mib"], "whole": card["memory_mib"]}
    return _("Card %(n)s (%(part)s of %(whole)s MiB)") % whole
