"""What the check of a machine found, as sentences in a language of the reader's choice."""

import gettext
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from hekla.domain.translation import gettext_noop as _

LANGUAGES = {"en": "", "zh-hans": "zh_Hans"}
_LOCALE = Path(__file__).resolve().parents[2] / "locale"


class Severity(StrEnum):
    """How much a finding matters: with a problem, Hekla does not start or does not keep people apart."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


LABELS = {Severity.OK: _("ok"), Severity.WARNING: _("warning"), Severity.PROBLEM: _("problem")}


@dataclass(frozen=True, slots=True)
class Finding:
    """One result. `sentences`: message ids, each with its placeholders; `values` fill in all of them."""

    subject: str
    severity: Severity
    sentences: tuple[str, ...]
    values: Mapping[str, object] = field(default_factory=dict)

    def text(self, translate: Callable[[str], str]) -> str:
        """The sentences, each translated if it is one of Hekla's own: reasons of the system stay as they are."""
        return " ".join(self._fill(translate(sentence)) for sentence in self.sentences)

    def _fill(self, sentence: str) -> str:
        return sentence.format(**self.values) if self.values else sentence


def translator(language: str) -> Callable[[str], str]:
    """The lookup of this language."""
    if not LANGUAGES[language]:
        return str
    return gettext.translation("django", _LOCALE, [LANGUAGES[language]], fallback=True).gettext


def language_of_terminal() -> str:
    """The language that the environment of this process names."""
    named = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    return "zh-hans" if named.lower().startswith("zh") else "en"


def literal(text: str) -> str:
    """A text of the system as a message without placeholders, on one line."""
    return " ".join(text.split()).replace("{", "{{").replace("}", "}}")
