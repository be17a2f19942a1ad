"""What was filled into a draft at once, and what stood there before.

The page itself carries it, so that nothing is kept of a job that nobody submitted.
"""

import json
from dataclasses import dataclass

from django.http import QueryDict

_BEFORE, _WORDS = "before", "before-words"
_OURS = (_BEFORE, _WORDS, "do", "csrfmiddlewaretoken")


@dataclass(frozen=True, slots=True)
class Filling:
    """It, in words. `before`: the draft as it was sent; `is_new`: it was filled in just now."""

    words: str
    before: QueryDict
    is_new: bool = True

    @property
    def document(self) -> str:
        """What stood there before, as a page carries it."""
        return json.dumps(dict(self.before.lists()), ensure_ascii=False, separators=(",", ":"))


def draft_of(sent: QueryDict) -> QueryDict:
    """What was typed, without what was asked to be done with it."""
    draft = sent.copy()
    for name in _OURS:
        draft.pop(name, None)
    return draft


def carried(sent: QueryDict) -> Filling | None:
    """What was filled in some time before and can still be undone."""
    before = _read(sent.get(_BEFORE, ""))
    return Filling(sent.get(_WORDS, ""), before, is_new=False) if before else None


def _read(text: str) -> QueryDict | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    draft = QueryDict(mutable=True)
    for name, values in found.items() if isinstance(found, dict) else ():
        draft.setlist(name, [str(value) for value in values] if isinstance(values, list) else [])
    return draft
