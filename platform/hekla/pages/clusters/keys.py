"""The credentials that a cluster form contains. Problems are reported at their fields."""

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
    """A change of a cluster's credentials. `key`: the new ones; `drops`: remove the stored ones. Neither: no change."""

    key: Key | None = None
    drops: bool = False


def requested_key(form: ClusterAccessForm, user: User, *, has_key: bool, now: datetime) -> KeyChange:
    """The change that the form asks for. `has_key`: credentials are stored; new ones are optional. Raises Invalid."""
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
    """The encrypted credentials, for a form that is shown again before anything is saved."""
    return encrypt_for_form(f"{access} {key.text}", by=user.pk, now=now)


def field_of(access: str) -> str:
    """The field that shows a connection failure of this access method."""
    return _FIELD[AccessMethod(access)] if access in _FIELD else "config"


def _new_key(form: ClusterAccessForm, access: str, before: keys.ClusterKey | None) -> keys.ClusterKey | None:
    """The credentials in the form, or `before` if it has none. The address can change without a new token."""
    typed = form.cleaned_data
    if access == AccessMethod.KUBECONFIG:
        text = typed["secret_kubeconfig"] or typed["secret_file"]
        return cluster_keys.from_kubeconfig(text, field=_FIELD[AccessMethod.KUBECONFIG]) if text else before
    token = typed["token"] or (before.token if before else "")
    return cluster_keys.from_token(typed["server"], typed["authority"], token)


def _carried(form: ClusterAccessForm, user: User, access: str, now: datetime) -> keys.ClusterKey | None:
    """The credentials that the form carries from an earlier request, if they are for this access method."""
    text = form.cleaned_data["secret_carried"]
    of, _space, key = ((decrypt_from_form(text, by=user.pk, now=now) if text else None) or "").partition(" ")
    return keys.decode(key) if of == access else None


def _check_file_name(form: ClusterAccessForm, access: str) -> None:
    """Raises Invalid unless the configuration names a kubeconfig exactly if it is used: an unused one would mislead."""
    named = bool(form.cleaned_data["config"].get("kubeconfig"))
    if access == AccessMethod.FILE and not named:
        sentence = _("Name the file in the configuration as “kubeconfig”.")
        raise Invalid([Problem("config", sentence)])
    if access != AccessMethod.FILE and named:
        sentence = _("The configuration names a kubeconfig. Remove it, or choose the kubeconfig file.")
        raise Invalid([Problem("config", sentence)])
