"""Node labels, tolerations and ports of a task as lines of text. What has no such line stays a passthrough value."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

GPU_MODEL = "nvidia.com/gpu.product"
"""The node label with the model of the GPUs. It has a field of its own."""
_EVERY_TAINT = "*"
_TOLERATION = re.compile(r"(?P<key>[^=:\s]+)(?P<value>=[^:\s]*)?(?::(?P<effect>[A-Za-z]+))?")
_PAIR = re.compile(r"(?P<name>[^=\s]+)\s*=\s*(?P<value>\S*)")
_EFFECTS = {effect.lower(): effect for effect in ("NoSchedule", "PreferNoSchedule", "NoExecute")}


class LinesField(forms.CharField):
    """One entry on each line; `read` turns them into the value of the JobSpec and raises ValidationError."""

    widget = forms.Textarea(attrs={"rows": 2, "class": "code-input", "spellcheck": "false"})

    def __init__(self, read: Callable[[Sequence[str]], Any], **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(required=False, max_length=8_000, **kwargs)
        self._read = read

    def clean(self, value: str | None) -> Any:  # noqa: ANN401
        """The entries. Raises ValidationError with the first wrong line."""
        lines = (line.strip() for line in (super().clean(value) or "").splitlines())
        return self._read([line for line in lines if line])


def read_labels(lines: Sequence[str]) -> dict[str, str]:
    """The labels that a node must have, from `label=value`."""
    return _pairs(lines, _("“%s” is not of the form label=value."))


def read_ports(lines: Sequence[str]) -> dict[str, int | str]:
    """The ports by name, from `name=number`. What is no number is left to the JobSpec to refuse."""
    pairs = _pairs(lines, _("“%s” is not of the form name=port, for example web=8080."))
    return {name: int(text) if text.isdecimal() and len(text) < 10 else text for name, text in pairs.items()}  # noqa: PLR2004


def read_tolerations(lines: Sequence[str]) -> list[dict[str, str]]:
    """The tolerations, from `key=value:Effect`, as kubectl writes taints. Value and effect are optional."""
    return [_toleration(line) for line in lines]


def write_tolerations(tolerations: Sequence[Mapping[str, Any]]) -> str | None:
    """The lines that `read_tolerations` reads; None if one of them has no line, such as one with a time limit."""
    lines = [_line(one) for one in tolerations]
    try:
        return "\n".join(lines) if read_tolerations(lines) == [dict(one) for one in tolerations] else None
    except forms.ValidationError:
        return None


def _toleration(line: str) -> dict[str, str]:
    match = _TOLERATION.fullmatch(line)
    effect = _EFFECTS.get((match["effect"] or "").lower(), "") if match else ""
    if match is None or (match["effect"] and not effect):
        example = "nvidia.com/gpu=present:NoSchedule"
        raise forms.ValidationError(
            _("“%(line)s” is not a toleration. Example: %(example)s. Effects: %(effects)s.")
            % {"line": line[:60], "example": example, "effects": _(", ").join(_EFFECTS.values())}
        )
    found = {} if match["key"] == _EVERY_TAINT else {"key": match["key"]}
    if not match["value"]:
        found["operator"] = "Exists"
    elif match["value"] != "=":
        found["value"] = match["value"][1:]
    return found | ({"effect": effect} if effect else {})


def _line(one: Mapping[str, Any]) -> str:
    equals = "" if one.get("operator") == "Exists" else f"={one.get('value', '')}"
    effect = one.get("effect")
    return f"{one.get('key') or _EVERY_TAINT}{equals}" + (f":{effect}" if effect else "")


def _pairs(lines: Sequence[str], wrong: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        match = _PAIR.fullmatch(line)
        if match is None:
            raise forms.ValidationError(wrong % line[:60])
        if match["name"] in found:
            raise forms.ValidationError(_("“%s” is set twice.") % match["name"][:60])
        found[match["name"]] = match["value"]
    return found


def write(pairs: Mapping[str, Any], read: Callable[[Sequence[str]], Any]) -> str | None:
    """The lines from which `read` reads these pairs; None if no lines can hold them."""
    text = "\n".join(f"{name}={value}" for name, value in pairs.items())
    try:
        return text if read(text.split("\n") if text else []) == dict(pairs) else None
    except forms.ValidationError:
        return None


def node_labels_field() -> LinesField:
    """The field of the node selector, without the GPU model."""
    return LinesField(
        read_labels,
        label=gettext_lazy("Node labels"),
        help_text=gettext_lazy("One label=value per line. Only nodes with all of these labels are used."),
    )


def tolerations_field() -> LinesField:
    """The field of the tolerations."""
    return LinesField(
        read_tolerations,
        label=gettext_lazy("Tolerated taints"),
        help_text=gettext_lazy("One key=value:Effect per line. Value and effect are optional. * is every taint."),
    )


def ports_field() -> LinesField:
    """The field of the ports."""
    return LinesField(
        read_ports,
        label=gettext_lazy("Ports"),
        help_text=gettext_lazy("One name=port per line, for example web=8080. The job's page then has a link to each."),
    )
