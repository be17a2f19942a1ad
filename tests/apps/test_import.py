"""Import of people from a table: parsing, preview, result and repetition."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.mail.backends.base import BaseEmailBackend
from django.test import Client
from django.urls import reverse
from tests.apps.conftest import People
from tests.apps.shared_people import db, people, shared_people

from hekla.apps.accounts.models import User
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.invitations import importing, letters, services, table
from hekla.apps.invitations.models import Invitation, InvitationMail
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy import departments
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Membership
from hekla.domain.errors import Invalid, NotFound
from hekla.lib import clock

__all__ = ["db", "people", "shared_people"]
As = Callable[[User], Client]
PAGE = reverse("invitations:import")
FOUR = "username,email,name,role\nbob,,,member\ncharlie,,,\ndora,dora@example.org,Dora,viewer\neve x,nobody,,king\n"


def run_import(people: People, text: str, *, by: User | None = None, act=importing.import_rows):
    rows = table.read(text).rows
    return act(rows, into=people.lab, by=by or people.alice, now=clock.now())


def results(outcomes) -> list[str]:
    return [outcome.what.value for outcome in outcomes]


def problems(outcome) -> dict[str, str]:
    return {problem.path: problem.message for problem in outcome.problems}


@pytest.mark.parametrize(
    "data",
    [
        b"username,email\ndora,d@example.org\n",
        b"\xef\xbb\xbfE-Mail;User name\r\nd@example.org;dora\r\n",
        "email\tusername\r\nd@example.org\tdora\r\n".encode("utf-16"),
        "用户名,邮箱,姓名\ndora,d@example.org,多拉\n".encode("gb18030"),
        b'\n"username", "email","phone, if any"\n\n"dora","d@example.org","1, 2"\n\n',
    ],
)
def test_spreadsheet_formats_are_read(data):
    (row,) = table.read(table.decoded(data)).rows
    assert {name: row.cells[name] for name in ("username", "email")} == {"username": "dora", "email": "d@example.org"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must have the column names"),
        ("colour\nred", "must have the column names"),
        ("name,role\nDora,member", "must have the column names"),
        ("username,login\na,b", "Duplicate column"),
        ('username\n"a', "Invalid CSV"),
        ("username\n" + "a\n" * 201, "more than 200 rows"),
        ("username\n" + "a" * 300_000, "larger than 256 KiB"),
        ("username\na\0b", "Not a text table"),
    ],
)
def test_invalid_tables_are_refused(text, sentence):
    with pytest.raises(Invalid, match=sentence):
        table.read(text)


def test_binary_files_are_refused():
    with pytest.raises(Invalid, match="not UTF-8"):
        table.decoded(b"\xff\xfe\x00\xd8")


def test_unknown_columns_are_listed():
    assert table.read("phone,username\n1,dora").unused == ["phone"]


def test_members_change_users_join_and_others_are_invited(people):
    bob, charlie, dora, eve = run_import(people, FOUR)
    assert results([bob, charlie, dora, eve]) == ["changed", "added", "invited", "wrong"]
    assert set(problems(eve)) == {"username", "email", "role"}
    roles = dict(Membership.objects.filter(tenant=people.lab).values_list("user__username", "role"))
    assert roles == {"alice": "admin", "bob": "member", "charlie": "member"}
    made = Invitation.objects.get()
    assert (made.username, made.display_name, made.role, made.email) == ("dora", "Dora", "viewer", "dora@example.org")
    kinds = ["MemberRoleChanged", "MemberAdded", "PersonInvited"]
    assert list(LoggedEvent.objects.filter(actor_name="alice").values_list("kind", flat=True)) == kinds


def test_preview_has_the_results_and_changes_nothing(people):
    events = LoggedEvent.objects.count()
    before = run_import(people, FOUR, act=importing.preview)
    assert (LoggedEvent.objects.count(), Invitation.objects.count()) == (events, 0)
    assert not any(outcome.secret for outcome in before)
    assert results(before) == results(run_import(people, FOUR))


def test_repeated_import_changes_nothing(people):
    (_bob, _charlie, dora, _eve) = run_import(people, FOUR)
    assert results(run_import(people, FOUR)) == ["nothing", "nothing", "nothing", "wrong"]
    services.sign_up(dora.secret, username="dorothea", password=None, display_name="", now=clock.now())
    assert results(run_import(people, FOUR)) == ["nothing", "nothing", "nothing", "wrong"]
    assert results(run_import(people, "email\nDORA@example.org")) == ["changed"]


def test_changed_invitation_gets_a_new_link(people):
    (first,) = run_import(people, "email,role\nd@example.org,viewer")
    (second,) = run_import(people, "email,role\nd@example.org,Member")
    assert (second.what, second.note) == ("invited", "The previous link becomes invalid.")
    assert Invitation.objects.get(revoked_at=None).pk == second.invitation.pk != first.invitation.pk


def test_refused_rows_have_problems_and_do_not_affect_others(people):
    rows = ["alice,,viewer,", "charlie,,,other", ",a@x.org,,", ",A@x.org,,", "charlie,,,,extra", ",,member,"]
    outcomes = run_import(people, "\n".join(["username,email,role,tenant", *rows]))
    assert results(outcomes) == ["wrong", "wrong", "invited", "wrong", "wrong", "wrong"]
    assert [set(problems(outcome)) for outcome in outcomes] == [
        {"role"},
        {"tenant"},
        set(),
        {"email"},
        {""},
        {"username"},
    ]
    assert "Same person as in row 4" in problems(outcomes[3])["email"]


def test_platform_admin_imports_into_any_tenant(people):
    outcomes = run_import(people, "username,tenant\nbob,other\nbob,\n", by=people.ada)
    assert results(outcomes) == ["added", "changed"]
    rows = table.read("username\nbob\n").rows
    (nowhere,) = importing.preview(rows, into=None, by=people.ada, now=clock.now())
    assert problems(nowhere) == {"tenant": "Enter a tenant."}


def test_last_admin_is_not_demoted(people):
    tenancy.add_member(people.lab, people.charlie, "admin", actor=importing.actor_of(people.ada), now=clock.now())
    assert results(run_import(people, "username\ncharlie\nalice\n", by=people.ada)) == ["changed", "wrong"]


QUOTAS = "username,jobs,GPU hours,resources\nbob,5,,cpu=8 memory=4Gi\ndora,2,100,\n"


def quota_of(user: User, people: People) -> tuple[object, ...] | None:
    return Quota.objects.filter(tenant=people.lab, user=user).values_list("jobs", "gpu_hours", "resources").first()


def test_table_sets_quotas_of_members_and_invited_people(people):
    preview = run_import(people, QUOTAS, act=importing.preview)
    assert (quota_of(people.bob, people), Invitation.objects.count()) == (None, 0)
    bob, dora = run_import(people, QUOTAS)
    assert [one.note for one in preview] == [bob.note, dora.note]
    assert bob.note == "Previous role: Viewer. Quota: Unfinished jobs 5, Resources in use cpu=8 memory=4Gi."
    assert dora.note == "Quota: Unfinished jobs 2, GPU-hours per month 100."
    assert quota_of(people.bob, people) == (5, None, {"cpu": "8", "memory": "4Gi"})
    made = services.sign_up(dora.secret, username="dora", password=None, display_name="", now=clock.now())
    assert quota_of(made, people) == (2, 100, {})
    assert results(run_import(people, QUOTAS)) == ["nothing", "nothing"]


def test_empty_cells_keep_quotas_and_new_quotas_renew_invitations(people):
    (_bob, first) = run_import(people, QUOTAS)
    (bob, dora) = run_import(people, "username,jobs,gpu_hours\nbob,,7\ndora,3,\n")
    assert (bob.what, dora.what, dora.note.split(".")[0]) == ("changed", "invited", "The previous link becomes invalid")
    assert quota_of(people.bob, people) == (5, 7, {"cpu": "8", "memory": "4Gi"})
    with pytest.raises(NotFound):
        services.sign_up(first.secret, username="dora", password=None, display_name="", now=clock.now())


def test_invalid_quotas_are_refused_in_their_cell(people):
    rows = ["bob,many,,", "bob,,-1,", "bob,,,cpu", "bob,,,shoes=5", "bob,1.5,,"]
    outcomes = run_import(people, "\n".join(["username,jobs,gpu_hours,resources", *rows]))
    assert [set(problems(one)) for one in outcomes] == [{"jobs"}, {"gpu_hours"}, {"resources"}, {"resources"}, {"jobs"}]
    assert not Quota.objects.exists()


def test_invitation_quota_ends_with_the_rights_of_the_inviter(people):
    tenancy.add_member(people.lab, people.charlie, "admin", actor=importing.actor_of(people.ada), now=clock.now())
    (_bob, dora) = run_import(people, QUOTAS, by=people.charlie)
    tenancy.change_role(people.lab, people.charlie.pk, "member", actor=importing.actor_of(people.ada), now=clock.now())
    with pytest.raises(NotFound):
        services.sign_up(dora.secret, username="dora", password=None, display_name="", now=clock.now())


def test_department_is_assigned_by_platform_admins(people):
    text = "username,department\ncharlie,vision\nbob,vision\n"
    assert [problems(one).keys() for one in run_import(people, text)] == [{"department"}] * 2
    departments.create(slug="vision", name="Vision", actor=importing.actor_of(people.ada), now=clock.now())
    departments.create(slug="speech", name="Speech", actor=importing.actor_of(people.ada), now=clock.now())
    assert [problems(one).keys() for one in run_import(people, text)] == [{"department"}] * 2, (
        "Alice cannot assign departments"
    )
    charlie, bob = run_import(people, text, by=people.ada)
    assert "Adds the tenant to department Vision." in charlie.note
    assert "The tenant" not in bob.note
    people.lab.refresh_from_db()
    assert people.lab.department.slug == "vision"
    assert results(run_import(people, text)) == ["nothing", "nothing"], (
        "an unchanged department is accepted from everyone who imports"
    )
    (other,) = run_import(people, "username,department\nbob,speech\n", by=people.ada)
    assert "belongs to department Vision" in problems(other)["department"]


def test_preview_shows_the_columns_of_the_table(people, as_):
    html = as_(people.alice).post(PAGE, {"tenant": "lab", "text": QUOTAS, "do": "preview"}).content.decode()
    assert "GPU-hours per month" in html
    assert "Quota: Unfinished jobs 5" in html
    assert "Department" not in html.split("<table")[1].split("</table>")[0]


def test_page_previews_then_imports(people, as_):
    alice = as_(people.alice)
    html = alice.post(PAGE, {"tenant": "lab", "text": FOUR, "do": "preview"}).content.decode()
    assert "Preview of the import" in html
    assert "Unknown role" in html
    assert "eve x,nobody" in html  # kept for correction
    assert not Invitation.objects.exists()
    answer = alice.post(PAGE, {"tenant": "lab", "text": FOUR, "do": "import"})
    (link,) = [row.link for row in answer.context["rows"] if row.link]
    page = answer.content.decode()
    assert "Results" in page
    assert "data:text/csv" in page
    form = Client().get(link.removeprefix("http://testserver")).content.decode()
    assert 'value="dora"' in form


def test_uploaded_file_is_shown_in_the_text_field(people, as_):
    for data in (b"username;name\r\nbob;=1+1\r\n", b"colour\r\n=1+1\r\n"):
        file = SimpleUploadedFile("people.csv", data)
        page = as_(people.alice).post(PAGE, {"tenant": "lab", "upload": file, "do": "preview"}).content.decode()
        assert "=1+1" in page.split("<textarea")[1]


def test_links_are_mailed(people, as_, settings):
    settings.MAIL_IS_SET_UP = True
    answer = as_(people.alice).post(PAGE, {"tenant": "lab", "text": FOUR, "do": "import"})
    (link,) = [row.link for row in answer.context["rows"] if row.link]
    assert "Sending the link by mail." in answer.content.decode()
    assert mail.outbox == [], "the page does not wait for the mail server"
    assert link.encode() not in bytes(InvitationMail.objects.get().link), "the link is stored encrypted"
    assert letters.send_due(now=clock.now()) == 1
    ((to, text),) = [(message.to, message.body) for message in mail.outbox]
    assert (to, link in text) == (["dora@example.org"], True)
    assert not InvitationMail.objects.exists()


def test_mail_is_retried_and_the_error_is_shown(people, as_, settings):
    settings.MAIL_IS_SET_UP, settings.EMAIL_BACKEND = True, "tests.apps.test_import.UnreachableMailServer"
    alice, now = as_(people.alice), clock.now()
    alice.post(PAGE, {"tenant": "lab", "text": FOUR, "do": "import"})
    assert letters.send_due(now=clock.now()) == 0
    page = alice.get(reverse("invitations:list", args=["lab"])).content.decode()
    assert "Not mailed yet. Retrying: nobody at home" in page
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert letters.send_due(now=now + timedelta(seconds=10)) == 0
    assert letters.send_due(now=now + timedelta(seconds=40)) == 1
    assert len(mail.outbox) == 1


def test_invalid_link_is_not_mailed(people, as_, settings):
    settings.MAIL_IS_SET_UP = True
    for end in (services.revoke, services.resend):
        as_(people.alice).post(PAGE, {"tenant": "lab", "text": FOUR, "do": "import"})
        end(people.lab, Invitation.objects.get(revoked_at=None).pk, by=people.alice, now=clock.now())
        assert letters.send_due(now=clock.now()) == 0
    assert (mail.outbox, InvitationMail.objects.count()) == ([], 0)


def test_mail_is_abandoned_and_the_link_deleted(people, as_, settings):
    settings.MAIL_IS_SET_UP, settings.EMAIL_BACKEND = True, "tests.apps.test_import.UnreachableMailServer"
    as_(people.alice).post(PAGE, {"tenant": "lab", "text": FOUR, "do": "import"})
    InvitationMail.objects.update(attempts=letters.MOST_ATTEMPTS - 1)
    letters.send_due(now=clock.now())
    letter = InvitationMail.objects.get()
    assert (letter.due_at, bytes(letter.link)) == (None, b"")
    page = as_(people.alice).get(reverse("invitations:list", args=["lab"])).content.decode()
    assert "Not mailed: nobody at home" in page


class UnreachableMailServer(BaseEmailBackend):
    """A mail server that does not answer."""

    def send_messages(self, email_messages):
        raise OSError("nobody at home")


def test_import_over_rest(people, as_):
    at, alice = reverse("api:v1:import_people"), as_(people.alice)
    for query, links in (("?dry_run=1&tenant=lab", 0), ("?tenant=lab", 1)):
        found = alice.post(at + query, FOUR.encode(), content_type="text/csv").json()
        assert [row["outcome"] for row in found] == ["changed", "added", "invited", "wrong"]
        assert len([row for row in found if row["link"]]) == links
    assert [problem["path"] for problem in found[3]["problems"]] == ["username", "email", "role"]
    refused = alice.post(at, {"text": "colour\nred"}, content_type="application/json")
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (400, "text")
