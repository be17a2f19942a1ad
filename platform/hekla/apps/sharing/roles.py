"""The roles of invited people in words."""

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from hekla.domain.sharing import GuestRole

LABELS: Mapping[GuestRole, object] = {
    GuestRole.OBSERVER: _("observer"),
    GuestRole.PEER: _("peer"),
    GuestRole.OWNER: _("co-owner"),
}
DESCRIPTIONS: Mapping[GuestRole, object] = {
    GuestRole.OBSERVER: _("Observer: sees everything, types nothing"),
    GuestRole.PEER: _("Peer: may take the keyboard"),
    GuestRole.OWNER: _("Co-owner: may also invite others, and end it"),
}
