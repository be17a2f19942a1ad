"""The lists about clusters."""

from django.template.defaultfilters import truncatechars
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.clusters.models import Environment
from hekla.pages.frame import html
from hekla.pages.frame.tables import ListColumn, ListFilter, ListTable, named


def _packages(environment: Environment) -> SafeString | str:
    if not environment.requirements:
        return _("console default interpreter")
    return format_html("<code>{}</code>", truncatechars(environment.requirements, 120))


class EnvironmentsTable(ListTable):
    """Named environments. `facts.may_edit`: whether the reader may change them."""

    label = gettext_lazy("Environments")

    name = ListColumn(gettext_lazy("Name"), sort="name")
    description = ListColumn(gettext_lazy("Description"), sort="description")
    packages = ListColumn(gettext_lazy("Packages"), cell=_packages)
    since = ListColumn(gettext_lazy("Since"), sort="created_at", cell=lambda one: html.moment(one.created_at))

    def render_name(self, record: Environment) -> SafeString:
        """A link for those who may change it."""
        if self.facts["may_edit"]:
            return named("clusters:edit_environment", record.name, record.name)
        return format_html("{}", record.name)


class EnvironmentsFilter(ListFilter):
    """Names and packages."""

    search = ("name", "description", "requirements")
    hint = gettext_lazy("Name or package")
