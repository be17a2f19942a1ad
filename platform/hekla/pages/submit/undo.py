"""Undo of an action that filled in a draft, by the draft before it.

The page itself contains the earlier draft, so the server stores nothing about jobs that are not submitted.
"""

import json
from dataclasses import dataclass

from django.http import QueryDict

_BEFORE, _WORDS = "before", "before-words"
_OURS = (_BEFORE, _WORDS, "do", "csrfmiddlewaretoken")


@dataclass(frozen=True, slots=True)
class AppliedFill:
    """An action that filled in the draft, in words. `before`: the draft before it; `is_new`: this request did it."""

    words: str
    before: QueryDict
    is_new: bool = True

    @property
    def document(self) -> str:
        """The earlier draft as JSON, for a hidden field of the page."""
        return json.dumps(dict(self.before.lists()), ensure_ascii=False, separators=(",", ":"))


def draft_of(sent: QueryDict) -> QueryDict:
    """The typed values, without the requested action."""
    draft = sent.copy()
    for name in _OURS:
        draft.pop(name, None)
    return draft


def carried(sent: QueryDict) -> AppliedFill | None:
    """The earlier action that can still be undone, or None."""
    before = _read(sent.get(_BEFORE, ""))
    return AppliedFill(sent.get(_WORDS, ""), before, is_new=False) if before else None


def _read(text: str) -> QueryDict | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    draft = QueryDict(mutable=True)
    for name, values in found.items() if isinstance(found, dict) else ():
        draft.setlist(name, [str(value) for value in values] if isinstance(values, list) else [])
    return draft
