"""What a browser sends of a form that nobody has touched."""

from html.parser import HTMLParser


def form_fields(page: str) -> dict[str, list[str]]:
    """The values by name of the form with the class `form`, as a browser would send them."""
    found = _Fields()
    found.feed(page)
    return found.values


class _Fields(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, list[str]] = {}
        self._is_inside, self._select, self._area = False, "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        facts = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._is_inside = "form" in facts.get("class", "").split()
        elif tag == "select":
            self._select = facts["name"]
        elif self._is_inside and tag == "textarea":
            self._area = facts["name"]
            self._add(self._area, "")
        elif self._is_inside and tag == "option" and "selected" in facts:
            self._add(self._select, facts.get("value", ""))
        elif self._is_inside and tag == "input" and _is_sent(facts):
            self._add(facts["name"], _sent(facts.get("value", "on" if facts.get("type") == "checkbox" else "")))

    def handle_data(self, data: str) -> None:
        if self._area:
            self.values[self._area][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area:
            text = self.values[self._area][-1].removeprefix("\r\n").removeprefix("\n")
            self.values[self._area][-1], self._area = _sent(text), ""
        elif tag == "form":
            self._is_inside = False

    def _add(self, name: str, value: str) -> None:
        self.values.setdefault(name, []).append(value)


def _sent(text: str) -> str:
    """Browsers send line breaks as CR LF, whatever the kind of the control."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _is_sent(facts: dict[str, str]) -> bool:
    kind = facts.get("type")
    return (
        "name" in facts and kind not in {"submit", "file"} and (kind not in {"checkbox", "radio"} or "checked" in facts)
    )
