"""What a form says of how a cluster is reached, read by those who know such keys: problems are told at their fields."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.clusters.encryption import decrypt_from_form, encrypt_for_form
from hekla.apps.clusters.services import Key
from hekla.backends.kubernetes import keys
from hekla.cluster_access import keys as given
from hekla.domain.errors import Invalid, Problem
from hekla.pages.clusters.forms import Way, WayForm

_FIELD = {Way.KUBECONFIG: "secret_kubeconfig", Way.TOKEN: "token"}


@dataclass(frozen=True, slots=True)
class Wish:
    """How a cluster is to be reached. `key`: one that was given now; `drops`: none is to be kept; else all stays."""

    key: Key | None = None
    drops: bool = False


def wish(form: WayForm, user: User, *, has_key: bool, now: datetime) -> Wish:
    """Raises Invalid. `has_key`: one is kept, so none need be given."""
    way = form.cleaned_data["way"] if has_key else form.wanted_way
    _check_file_name(form, way)
    if way in (Way.ACCOUNT, Way.FILE):
        return Wish(drops=has_key)
    if not way:
        return Wish()
    found = _new_key(form, way, _carried(form, user, way, now))
    if found is None:
        raise Invalid([Problem(_FIELD[Way(way)], _("Enter the credentials here."))])
    return Wish(given.as_stored(found))


def carry(key: Key, way: str, user: User, *, now: datetime) -> str:
    """For a form that is handed back before anything was saved."""
    return encrypt_for_form(f"{way} {key.text}", by=user.pk, now=now)


def field_of(way: str) -> str:
    """Where it is told that a cluster cannot be reached in this way."""
    return _FIELD[Way(way)] if way in _FIELD else "config"


def _new_key(form: WayForm, way: str, before: keys.ClusterKey | None) -> keys.ClusterKey | None:
    """What was typed or sent now, or `before` where nothing was. An address may be corrected without the token."""
    typed = form.cleaned_data
    if way == Way.KUBECONFIG:
        text = typed["secret_kubeconfig"] or typed["secret_file"]
        return given.from_kubeconfig(text, field=_FIELD[Way.KUBECONFIG]) if text else before
    token = typed["token"] or (before.token if before else "")
    return given.from_token(typed["server"], typed["authority"], token)


def _carried(form: WayForm, user: User, way: str, now: datetime) -> keys.ClusterKey | None:
    """What was given for this way when the form was sent before."""
    text = form.cleaned_data["secret_carried"]
    of, _space, key = ((decrypt_from_form(text, by=user.pk, now=now) if text else None) or "").partition(" ")
    return keys.decode(key) if of == way else None


def _check_file_name(form: WayForm, way: str) -> None:
    """A file is named where it is used, and nowhere else: what is named and not used would mislead."""
    named = bool(form.cleaned_data["config"].get("kubeconfig"))
    if way == Way.FILE and not named:
        sentence = _("Name the file in the configuration as “kubeconfig”.")
        raise Invalid([Problem("config", sentence)])
    if way != Way.FILE and named:
        sentence = _("The configuration names a kubeconfig. Remove it, or choose the kubeconfig file.")
        raise Invalid([Problem("config", sentence)])
