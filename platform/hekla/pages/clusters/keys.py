"""What a form says of how a cluster is reached, read by those who know such keys: problems are told at their fields."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.clusters.encryption import decrypt_from_form, encrypt_for_form
from hekla.apps.clusters.services import Key
from hekla.backends.kubernetes import keys
from hekla.cluster_access import keys as cluster_keys
from hekla.domain.errors import Invalid, Problem
from hekla.pages.clusters.forms import AccessMethod, ClusterAccessForm

_FIELD = {AccessMethod.KUBECONFIG: "secret_kubeconfig", AccessMethod.TOKEN: "token"}


@dataclass(frozen=True, slots=True)
class KeyChange:
    """How a cluster is to be reached. `key`: one that was given now; `drops`: none is to be kept; else all stays."""

    key: Key | None = None
    drops: bool = False


def requested_key(form: ClusterAccessForm, user: User, *, has_key: bool, now: datetime) -> KeyChange:
    """Raises Invalid. `has_key`: one is kept, so none need be given."""
    access = form.cleaned_data["access"] if has_key else form.chosen_access
    _check_file_name(form, access)
    if access in (AccessMethod.ACCOUNT, AccessMethod.FILE):
        return KeyChange(drops=has_key)
    if not access:
        return KeyChange()
    found = _new_key(form, access, _carried(form, user, access, now))
    if found is None:
        raise Invalid([Problem(_FIELD[AccessMethod(access)], _("Enter the credentials here."))])
    return KeyChange(cluster_keys.as_stored(found))


def carry(key: Key, access: str, user: User, *, now: datetime) -> str:
    """For a form that is handed back before anything was saved."""
    return encrypt_for_form(f"{access} {key.text}", by=user.pk, now=now)


def field_of(access: str) -> str:
    """Where it is told that a cluster cannot be reached in this way."""
    return _FIELD[AccessMethod(access)] if access in _FIELD else "config"


def _new_key(form: ClusterAccessForm, access: str, before: keys.ClusterKey | None) -> keys.ClusterKey | None:
    """What was typed or sent now, or `before` where nothing was. An address may be corrected without the token."""
    typed = form.cleaned_data
    if access == AccessMethod.KUBECONFIG:
        text = typed["secret_kubeconfig"] or typed["secret_file"]
        return cluster_keys.from_kubeconfig(text, field=_FIELD[AccessMethod.KUBECONFIG]) if text else before
    token = typed["token"] or (before.token if before else "")
    return cluster_keys.from_token(typed["server"], typed["authority"], token)


def _carried(form: ClusterAccessForm, user: User, access: str, now: datetime) -> keys.ClusterKey | None:
    """What was given for this way when the form was sent before."""
    text = form.cleaned_data["secret_carried"]
    of, _space, key = ((decrypt_from_form(text, by=user.pk, now=now) if text else None) or "").partition(" ")
    return keys.decode(key) if of == access else None


def _check_file_name(form: ClusterAccessForm, access: str) -> None:
    """A file is named where it is used, and nowhere else: what is named and not used would mislead."""
    named = bool(form.cleaned_data["config"].get("kubeconfig"))
    if access == AccessMethod.FILE and not named:
        sentence = _("Name the file in the configuration as “kubeconfig”.")
        raise Invalid([Problem("config", sentence)])
    if access != AccessMethod.FILE and named:
        sentence = _("The configuration names a kubeconfig. Remove it, or choose the kubeconfig file.")
        raise Invalid([Problem("config", sentence)])
