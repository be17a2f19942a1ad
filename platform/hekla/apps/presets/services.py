"""Saves, renames and deletes presets."""

from datetime import datetime

from django.db import IntegrityError
from django.utils.translation import gettext as _

from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log import changes
from hekla.apps.event_log.services import record, unit_of_work
from hekla.apps.presets import selectors
from hekla.apps.presets.models import MAX_NAME, Preset
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain import events
from hekla.domain.errors import Forbidden, NotFound, Refused
from hekla.domain.jobspec import JobSpec

MAX_PRESETS = 200


class PresetNameConflict(Refused):
    """Another preset of the same person or tenant has that name."""

    code = "name_taken"


class TooManyPresets(Refused):
    """The maximum number of presets exists already."""

    code = "too_many"


def save(*, name: str, spec: JobSpec, user: User, tenant: Tenant | None, now: datetime) -> Preset:
    """Save a job under a name, replacing the preset of that name; for a tenant, or for the person alone.

    Raises NotFound, Forbidden, Refused, PresetNameConflict (saved by another request at the same time), TooManyPresets.
    """
    name = _checked(name)
    if tenant is not None:
        _require_right(user, tenant)
    beside = selectors.of(user, tenant)
    try:
        with unit_of_work():
            preset = beside.filter(name=name).first()
            if preset is None:
                preset = _create(name, spec, beside.count(), user, tenant, now)
            else:
                changes.write(preset, spec=spec.document(), changed_at=now)
            _tell(preset, events.PresetSaved(name=name), user, now)
    except IntegrityError as error:
        raise _name_conflict(name) from error
    return preset


def _create(name: str, spec: JobSpec, count: int, user: User, tenant: Tenant | None, now: datetime) -> Preset:
    if count >= MAX_PRESETS:
        raise TooManyPresets(_("There are %d saved templates, the maximum. Delete some first.") % MAX_PRESETS, "name")
    return Preset.objects.create(
        name=name, spec=spec.document(), owner=user, tenant=tenant, created_at=now, changed_at=now
    )


def rename(preset: Preset, name: str, *, user: User, now: datetime) -> Preset:
    """Rename a preset. Raises Forbidden, Refused, PresetNameConflict."""
    _require_change(preset, user)
    name = _checked(name)
    try:
        with unit_of_work():
            changes.lock(preset)
            old, preset.name, preset.changed_at = preset.name, name, now
            preset.save(update_fields=["name", "changed_at"])
            _tell(preset, events.PresetRenamed(name=name, old=old), user, now)
    except IntegrityError as error:
        raise _name_conflict(name) from error
    return preset


def set_default(preset: Preset, *, is_default: bool, user: User, now: datetime) -> Preset:
    """Make a preset the only default of its person or tenant, or no longer the default. Raises Forbidden."""
    _require_change(preset, user)
    with unit_of_work():
        beside = selectors.of(preset.owner, preset.tenant)
        list(beside.select_for_update(of=("self",)).order_by("pk"))  # serializes concurrent changes of the default
        beside.exclude(pk=preset.pk).filter(is_default=True).update(is_default=False)
        changes.write(preset, is_default=is_default)
        _tell(preset, events.PresetDefaultChanged(name=preset.name, is_default=is_default), user, now)
    return preset


def delete(preset: Preset, *, user: User, now: datetime) -> None:
    """Delete a preset. Raises Forbidden."""
    _require_change(preset, user)
    with unit_of_work():
        changes.lock(preset)
        _tell(preset, events.PresetDeleted(name=preset.name), user, now)
        preset.delete()


def _tell(preset: Preset, event: events.Event, user: User, now: datetime) -> None:
    record(event, subject=f"preset:{preset.uid}", tenant=preset.tenant_id, actor=actor_of(user), at=now)


def _name_conflict(name: str) -> PresetNameConflict:
    return PresetNameConflict(_("A template “%s” exists already.") % name, "name")


def _checked(name: str) -> str:
    name = " ".join(name.split())
    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise Refused(_("The name of a template has 1 to %d characters.") % MAX_NAME, "name")
    return name


def _require_right(user: User, tenant: Tenant) -> None:
    if not tenancy.visible_to(user).filter(pk=tenant.pk).exists():
        raise NotFound(_("Unknown tenant."))
    if not tenancy.may(user, tenant.pk, Permission.KEEP_TENANT_PRESETS):
        raise Forbidden(
            _("Only admins of %s can share templates with the tenant. Save it for yourself.") % tenant, "tenant"
        )


def _require_change(preset: Preset, user: User) -> None:
    if not selectors.may_change(user, preset):
        raise Forbidden(_("Only tenant admins can change templates of the tenant."))
