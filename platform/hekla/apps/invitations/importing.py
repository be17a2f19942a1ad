"""Imports people into tenants from a table, with a preview.

People with an account become members, members get the new role, and all others are invited. Each row has its own
transaction: a refused row does not affect the others. The preview does the same in an enclosing transaction and rolls
it back, so that it cannot differ from the import.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.accounts import selectors as accounts
from hekla.apps.accounts.models import User
from hekla.apps.accounts.roles import Permission
from hekla.apps.accounts.selectors import may as may_on_platform
from hekla.apps.accounts.services import actor_of
from hekla.apps.event_log.services import unit_of_work
from hekla.apps.invitations import extras, selectors, services
from hekla.apps.invitations.forms import RowForm
from hekla.apps.invitations.models import Invitation
from hekla.apps.invitations.table import InvitationRow
from hekla.apps.sentences import together
from hekla.apps.tenancy import departments
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy import services as tenancy_services
from hekla.apps.tenancy.models import Membership, Tenant
from hekla.domain.errors import HeklaError, Invalid, Problem, Refused


class RowOutcome(StrEnum):
    """The kind of a row's outcome."""

    INVITED = "invited"
    ADDED = "added"
    CHANGED = "changed"
    NOTHING = "nothing"
    WRONG = "wrong"


WORDS = {
    RowOutcome.INVITED: gettext_lazy("Invited"),
    RowOutcome.ADDED: gettext_lazy("Added as member"),
    RowOutcome.CHANGED: gettext_lazy("Updated"),
    RowOutcome.NOTHING: gettext_lazy("No change"),
    RowOutcome.WRONG: gettext_lazy("Error"),
}
HEADS = {
    "username": gettext_lazy("User name"),
    "email": gettext_lazy("Email address"),
    "name": gettext_lazy("Name"),
    "role": gettext_lazy("Role"),
    "tenant": gettext_lazy("Tenant"),
}
_MORE_HEADS = {"department": gettext_lazy("Department")}


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """The outcome of a row, of an import or a preview. `invitation`: a new one, if any; `secret`: of its link."""

    row: InvitationRow
    what: RowOutcome
    note: str = ""
    problems: Sequence[Problem] = ()
    invitation: Invitation | None = None
    secret: str = ""

    @property
    def words(self) -> str:
        """The label of the outcome."""
        return str(WORDS[self.what])

    @property
    def cells(self) -> list[tuple[str, str, list[str]]]:
        """Label, text and errors of each cell; optional columns only if the table has them."""
        rare = {name: head for name, head in (_MORE_HEADS | extras.heads()).items() if name in self.row.cells}
        heads = HEADS | rare
        return [(str(head), self.row.cells.get(name, ""), self._wrong_in(name)) for name, head in heads.items()]

    @property
    def wrong_as_a_whole(self) -> list[str]:
        """The errors that belong to no single cell."""
        cells = HEADS.keys() | self.row.cells.keys()
        return [problem.message for problem in self.problems if problem.path not in cells]

    def _wrong_in(self, column: str) -> list[str]:
        return [problem.message for problem in self.problems if problem.path == column]


def preview(rows: Sequence[InvitationRow], *, into: Tenant | None, by: User, now: datetime) -> list[ImportOutcome]:
    """The outcomes of an import, which is rolled back."""
    with suppress(_RolledBack), unit_of_work():
        outcomes = import_rows(rows, into=into, by=by, now=now)
        raise _RolledBack
    return [replace(outcome, invitation=None, secret="") for outcome in outcomes]


def import_rows(rows: Sequence[InvitationRow], *, into: Tenant | None, by: User, now: datetime) -> list[ImportOutcome]:
    """Import the rows. `into`: the tenant for rows without one."""
    once = _Import(into=into, by=by, now=now)
    return [once.outcome(row) for row in rows]


def counted(outcomes: Sequence[ImportOutcome]) -> list[tuple[str, int]]:
    """The number of rows by the label of their outcome, without zeros."""
    found = Counter(outcome.what for outcome in outcomes)
    return [(str(words), found[what]) for what, words in WORDS.items() if found[what]]


class _RolledBack(Exception):
    """Rolls back the transaction of a preview."""


@dataclass(frozen=True, slots=True)
class _Request:
    """The values of a valid row."""

    username: str
    email: str
    name: str
    role: str
    tenant: str
    department: str
    grants: extras.Values


@dataclass
class _Import:
    into: Tenant | None
    by: User
    now: datetime
    row_by_person: dict[tuple[int, str], int] = field(default_factory=dict)

    def outcome(self, row: InvitationRow) -> ImportOutcome:
        try:
            request = _read(row)
            with unit_of_work():
                tenant = self._tenant(request.tenant)
                self._refuse_twice(row, request, tenant)
                return self._bring_in(row, request, tenant)
        except Invalid as error:
            return ImportOutcome(row, RowOutcome.WRONG, problems=error.problems)
        except HeklaError as error:
            path = error.path if isinstance(error, Refused) else ""
            return ImportOutcome(row, RowOutcome.WRONG, problems=[Problem(path, error.message)])

    def _tenant(self, slug: str) -> Tenant:
        """The tenant, locked against other imports, but not against new jobs that refer to it."""
        wanted = slug or (self.into.slug if self.into else "")
        if not wanted:
            raise Refused(_("Enter a tenant."), "tenant")
        found = tenancy.managed_by(self.by).filter(slug=wanted)
        tenant = found.select_for_update(no_key=True).first()
        if tenant is None:
            raise Refused(_("Unknown tenant, or you do not manage its members."), "tenant")
        return tenant

    def _refuse_twice(self, row: InvitationRow, request: _Request, tenant: Tenant) -> None:
        for column, value in (("username", request.username), ("email", request.email.lower())):
            line = self.row_by_person.setdefault((tenant.pk, value), row.line) if value else row.line
            if line != row.line:
                raise Refused(_("Same person as in row %(line)d.") % {"line": line}, column)

    def _bring_in(self, row: InvitationRow, request: _Request, tenant: Tenant) -> ImportOutcome:
        """Add or invite the person, then set the further values of the row."""
        self._require_rights(request, tenant)
        notes, user = [self._place(request, tenant)], _known(request, tenant)
        if user is None:
            outcome = self._invite(row, request, tenant)
            notes.append(extras.words(request.grants) if outcome.invitation else "")
        else:
            outcome = self._have(row, request, tenant, user)
            notes.append(self._give(request, tenant, user))
        if not any(notes):
            return outcome
        if outcome.what is RowOutcome.NOTHING:
            return replace(outcome, what=RowOutcome.CHANGED, note=together(notes))
        return replace(outcome, note=together([outcome.note, *notes]))

    def _require_rights(self, request: _Request, tenant: Tenant) -> None:
        if not extras.may_all(request.grants, self.by, tenant):
            raise Refused(_("Your role cannot set this here."), next(iter(request.grants)))

    def _place(self, request: _Request, tenant: Tenant) -> str:
        """Add the tenant to the row's department, if it is in none. Returns a sentence about it, or ""."""
        if not request.department or (tenant.department and tenant.department.slug == request.department):
            return ""
        may = may_on_platform(self.by, Permission.MANAGE_TENANTS)
        department = tenancy.departments_of(self.by).filter(slug=request.department).first() if may else None
        if department is None:
            raise Refused(_("Unknown department, or you may not add tenants to it."), "department")
        if tenant.department:
            sentence = _("The tenant belongs to department %(department)s. Remove it there first.")
            raise Refused(sentence % {"department": tenant.department}, "department")
        tenants = [*department.tenants.all(), tenant]
        departments.change(department, {}, tenants=tenants, actor=actor_of(self.by), now=self.now)
        return _("Adds the tenant to department %(department)s.") % {"department": department}

    def _give(self, request: _Request, tenant: Tenant, user: User) -> str:
        new = extras.differing(request.grants, tenant, user)
        extras.give(new, tenant, user, actor=actor_of(self.by), now=self.now)
        return extras.words(new)

    def _have(self, row: InvitationRow, request: _Request, tenant: Tenant, user: User) -> ImportOutcome:
        membership = Membership.objects.filter(tenant=tenant, user=user).first()
        if membership is None:
            return self._add(row, request, tenant, user)
        if membership.role == request.role:
            return ImportOutcome(row, RowOutcome.NOTHING, _("%(who)s is a member already.") % {"who": user.username})
        old = membership.get_role_display()
        tenancy_services.change_role(tenant, user.pk, request.role, actor=actor_of(self.by), now=self.now)
        return ImportOutcome(row, RowOutcome.CHANGED, _("Previous role: %(role)s.") % {"role": old})

    def _add(self, row: InvitationRow, request: _Request, tenant: Tenant, user: User) -> ImportOutcome:
        if not user.is_active:
            raise Refused(_("Sign-in is disabled for this person."), "username")
        tenancy_services.add_member(tenant, user, request.role, actor=actor_of(self.by), now=self.now)
        return ImportOutcome(row, RowOutcome.ADDED, _("%(who)s has an account.") % {"who": user.username})

    def _invite(self, row: InvitationRow, request: _Request, tenant: Tenant) -> ImportOutcome:
        waiting = list(selectors.waiting(tenant).filter(_meant(request)))
        if any(_is_as_requested(invitation, request, self.now) for invitation in waiting):
            return ImportOutcome(row, RowOutcome.NOTHING, _("An invitation is already open."))
        for invitation in waiting:
            services.revoke(tenant, invitation.pk, by=self.by, now=self.now)
        made, secret = services.invite(
            tenant,
            role=request.role,
            email=request.email,
            username=request.username,
            display_name=request.name,
            grants=request.grants,
            by=self.by,
            now=self.now,
        )
        note = _("The previous link becomes invalid.") if waiting else ""
        return ImportOutcome(row, RowOutcome.INVITED, note, invitation=made, secret=secret)


def _read(row: InvitationRow) -> _Request:
    """The values of a row. Raises Invalid."""
    form = RowForm(row.cells)
    problems = [Problem(name, str(sentence)) for name, sentences in form.errors.items() for sentence in sentences]
    grants = _granted(row, problems)
    if row.has_too_many:
        problems.append(Problem("", _("The row has more cells than the first row.")))
    if problems:
        raise Invalid(problems)
    return _Request(**form.cleaned_data, grants=grants)


def _granted(row: InvitationRow, problems: list[Problem]) -> dict[str, Any]:
    """The further values of a row; adds their errors to `problems`."""
    granted: dict[str, Any] = {}
    for extra in extras.KNOWN:
        try:
            granted |= extra.read(row.cells)
        except Invalid as error:
            problems += error.problems
    return granted


def _known(request: _Request, tenant: Tenant) -> User | None:
    """The user with that name, else the person who accepted an invitation for them to this tenant; None if unknown.

    Never searches by users' email addresses: an import must not reveal the addresses of other people.
    """
    if request.username and (named := accounts.by_username(request.username)):
        return named
    accepted = Invitation.objects.filter(_meant(request), tenant=tenant).exclude(accepted_by=None)
    last = accepted.select_related("accepted_by").order_by("-accepted_at").first()
    return last.accepted_by if last else None


def _meant(request: _Request) -> Q:
    """The invitations for this person."""
    by_address = Q(email__iexact=request.email) if request.email else Q(pk=None)
    return by_address | Q(username=request.username) if request.username else by_address


def _is_as_requested(invitation: Invitation, request: _Request, now: datetime) -> bool:
    is_open = invitation.expires_at > now and selectors.is_still_meant(invitation)
    is_there = not request.email or invitation.email.lower() == request.email.lower()
    return is_open and is_there and (invitation.role, invitation.grants) == (request.role, request.grants)
