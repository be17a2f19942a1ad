"""All demonstrations as data: their jobs, their texts, and the outcome when nothing disturbs them."""

from django.utils.translation import gettext_lazy as _

from hekla.apps.demonstrations.catalogue import cards, gangs, nodes, order
from hekla.apps.demonstrations.scenes import Demonstration
from hekla.domain.errors import NotFound

DEMONSTRATIONS: tuple[Demonstration, ...] = (
    *gangs.DEMONSTRATIONS,
    *nodes.DEMONSTRATIONS,
    *cards.DEMONSTRATIONS,
    *order.DEMONSTRATIONS,
)


def get(name: str) -> Demonstration:
    """The demonstration with this name. Raises NotFound."""
    found = next((one for one in DEMONSTRATIONS if one.name == name), None)
    if found is None:
        raise NotFound(str(_("Unknown demonstration.")))
    return found
