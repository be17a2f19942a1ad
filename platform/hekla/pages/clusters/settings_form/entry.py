"""One submission of a cluster's settings: as fields, or as the JSON document below them, whichever a person changed.

The page carries the document that it showed, as `config_base`. Who sends only `config` sends the document.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from hekla.backends import registry
from hekla.backends.config import parse_config
from hekla.domain.errors import HeklaError, Invalid, Problem
from hekla.pages.clusters.settings_form.form import SettingsForm

BASE = "config_base"
OF_KIND = "config_kind"
"""The kind of cluster whose fields the page showed."""


@dataclass
class SettingsEntry:
    """What the page shows, and what was entered. `form`: None without a kind. `data`: the request's, with `config`.

    `problem`: what is wrong with the settings, where no field says it. `is_unfinished`: the person asked for another
    row or kind, so that nothing is checked yet.
    """

    form: SettingsForm | None
    data: QueryDict | None
    base: str
    problem: HeklaError | None = None
    is_unfinished: bool = False

    @property
    def is_valid(self) -> bool:
        """Whether the settings can be saved."""
        return self.problem is None and not self.is_unfinished and (self.form is None or not self.form.errors)


def unbound(kind: str, config: Mapping[str, Any]) -> SettingsEntry:
    """The settings as they are stored."""
    return SettingsEntry(_form(kind, config), None, document(config))


def read(kind: str, data: QueryDict, stored: Mapping[str, Any]) -> SettingsEntry:
    """The settings that a person sent."""
    data = data.copy()
    if BASE not in data:
        config = _parsed(_sent(data, "config"))
        if "config" not in data:
            data["config"] = document({})
        form = _form(kind, stored if config is None else config)
        return SettingsEntry(form, data, _sent(data, "config"), is_unfinished="more" in data)
    if data.get(OF_KIND, kind) != kind:
        data["config"] = document({})
        return SettingsEntry(_form(kind, {}), data, _sent(data, "config"), is_unfinished=True)
    base = _parsed(_sent(data, BASE)) or {}
    form = _form(kind, base, data)
    if form is None:
        return SettingsEntry(None, data, _sent(data, "config"))
    if _plain(_sent(data, "config")) != _plain(_sent(data, BASE)):
        return _of_document(kind, form, base, data)
    return _of_fields(form, data)


def document(config: Mapping[str, Any]) -> str:
    """The configuration as the page shows it."""
    return json.dumps(config, indent=2, ensure_ascii=False)


def _of_fields(form: SettingsForm, data: QueryDict) -> SettingsEntry:
    data["config"] = document(form.config())
    found = SettingsEntry(form, data, _sent(data, "config"), is_unfinished="more" in data)
    if found.is_unfinished:
        form.drop_problems()
        return found
    form.is_valid()
    try:
        form.require_valid()
    except Invalid as error:
        found.problem = error
    return found


def _of_document(kind: str, form: SettingsForm, base: Mapping[str, Any], data: QueryDict) -> SettingsEntry:
    """The document counts, unless the fields were changed as well."""
    if form.config() != base:
        sentence = _("Both the fields and the JSON were changed. Undo one of these changes.")
        form.drop_problems()
        return SettingsEntry(form, data, _sent(data, BASE), Invalid([Problem("config", sentence)]))
    config = _parsed(_sent(data, "config"))
    try:
        parse_config(registry.kinds()[kind].config, config or {})
    except Invalid:  # the form of the cluster says what is wrong, at the document
        config = None
    form.drop_problems()
    fields = form if config is None else SettingsForm(registry.kinds()[kind].config, config)
    return SettingsEntry(fields, data, _sent(data, BASE) if config is None else _sent(data, "config"))


def _form(kind: str, config: Mapping[str, Any], data: QueryDict | None = None) -> SettingsForm | None:
    known = registry.kinds().get(kind)
    return SettingsForm(known.config, config, data) if known else None


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _sent(data: QueryDict, name: str) -> str:
    """The text of a field; empty without one."""
    return str(data.get(name) or "")


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").strip()
