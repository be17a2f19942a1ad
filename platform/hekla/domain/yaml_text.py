"""Reads untrusted YAML: size, depth and expansion are limited before anything is built.

Plain scalars follow Kubernetes' tools if these differ from YAML 1.1: `22:30` and `2026-01-31` are text. A duplicate key
is an error, since one of the values would be lost.
"""

import re
from collections.abc import Hashable, Iterator
from typing import Any

import yaml

from hekla.domain.errors import Invalid, Problem
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import quote

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64
MAX_NODES = 100_000

_PROBLEMS = (
    gettext_noop("block sequence entries are not allowed in this context"),
    gettext_noop("control characters are not allowed"),
    gettext_noop("could not find expected ':'"),
    gettext_noop("did not find expected '-' indicator"),
    gettext_noop("did not find expected ',' or ']'"),
    gettext_noop("did not find expected ',' or '}'"),
    gettext_noop("did not find expected <document start>"),
    gettext_noop("did not find expected alphabetic or numeric character"),
    gettext_noop("did not find expected key"),
    gettext_noop("did not find expected node content"),
    gettext_noop("found a tab character that violates indentation"),
    gettext_noop("found character that cannot start any token"),
    gettext_noop("found duplicate anchor"),
    gettext_noop("found undefined alias"),
    gettext_noop("found unexpected document indicator"),
    gettext_noop("found unexpected end of stream"),
    gettext_noop("found unknown escape character"),
    gettext_noop("mapping keys are not allowed in this context"),
    gettext_noop("mapping values are not allowed in this context"),
)
"""The most frequent messages of the YAML parser."""
# YAML folds these like line ends, unless they are escaped.
_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _DuplicateKey(yaml.constructor.ConstructorError):
    """A mapping has a key twice."""


class _Loader(_Base):  # type: ignore[misc]
    """The safe loader, with our rules for plain scalars and duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = set()
        for key, _ in node.value:
            if key.value == "<<" or not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in keys:
                raise _DuplicateKey(None, None, translate("duplicate key {key}", key=quote(key.value)), key.start_mark)
            keys.add(key.value)
        return dict(super().construct_mapping(node, deep))


def _without(*tags: str) -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers
    return {first: [(tag, rule) for tag, rule in rules if tag not in tags] for first, rules in resolvers.items()}


_INT, _FLOAT, _TIME = (f"tag:yaml.org,2002:{name}" for name in ("int", "float", "timestamp"))
_Loader.yaml_implicit_resolvers = _without(_INT, _FLOAT, _TIME)
_NUMBERS = (
    (_INT, re.compile(r"[-+]?(0|[1-9][0-9]*|0x[0-9a-fA-F]+|0o?[0-7]+)$")),
    (_FLOAT, re.compile(r"[-+]?([0-9]+\.[0-9]*|\.?[0-9]+)([eE][-+]?[0-9]+)?$|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$")),
)
for _tag, _rule in _NUMBERS:
    _Loader.add_implicit_resolver(_tag, _rule, list("-+0123456789."))


def read(text: str | bytes) -> list[Any]:
    """The documents in the text, as plain data. Raises Invalid with a sentence."""
    text = _decoded(text)
    try:
        require_bounded(text)
        return [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
    except yaml.YAMLError as error:
        raise Invalid([Problem("", _describe(error))]) from error
    except (ValueError, RecursionError) as error:
        raise Invalid([Problem("", translate("Invalid YAML: {error}.", error=error))]) from error


def nodes(text: str) -> list[yaml.Node]:
    """The documents of a text that `read` accepts as nodes, which know their lines."""
    return [node for node in yaml.compose_all(text, Loader=_Loader) if node is not None]


def _decoded(text: str | bytes) -> str:
    if len(text) > MAX_BYTES:
        size = f"{len(text) / MAX_BYTES:.1f}"
        message = translate(
            "The text has {size} MiB. The limit is {most} MiB.", size=size, most=MAX_BYTES // 1024 // 1024
        )
        raise Invalid([Problem("", message)])
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = translate("Not UTF-8 text: byte {byte} is invalid.", byte=error.start + 1)
        raise Invalid([Problem("", message)]) from error


def require_bounded(text: str, most: int = MAX_NODES) -> None:
    """Refuse text that is too deep, or has too many entries with expanded aliases, without building it.

    Raises ValueError, YAMLError.
    """
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = [(None, 0)]
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, 1))
            if len(open_nodes) > MAX_DEPTH:
                raise ValueError(translate("it is nested more than {levels} levels deep", levels=MAX_DEPTH))
            continue
        grown = _size_of(event, sizes)
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, grown = open_nodes.pop()
            sizes |= {anchor: grown} if anchor else {}
        outer, size = open_nodes[-1]
        open_nodes[-1] = outer, size + grown
        if size + grown > most:
            raise ValueError(translate("with expanded aliases it has more than {most:,} entries", most=most))


def _size_of(event: yaml.Event, sizes: dict[str, int]) -> int:
    if isinstance(event, yaml.AliasEvent):
        if event.anchor not in sizes:
            message = translate("the alias {alias} is undefined or refers to itself", alias=quote(event.anchor))
            raise yaml.composer.ComposerError(None, None, message, event.start_mark)  # type: ignore[arg-type]
        return sizes[event.anchor]
    if isinstance(event, yaml.ScalarEvent):
        if event.anchor:
            sizes[event.anchor] = 1
        return 1
    return 0


def _describe(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or translate("it cannot be read")
    where = translate("Line {line}, column {column}: ", line=mark.line + 1, column=mark.column + 1) if mark else ""
    if isinstance(error, _DuplicateKey):
        return where + translate("{sentence}.", sentence=problem)
    return where + translate(
        "invalid YAML: {problem}.", problem=translate(problem) if problem in _PROBLEMS else problem
    )


class _Dumper(yaml.SafeDumper):
    """Writes multi-line texts as blocks."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if _OTHER_BREAKS.search(text) else style)


_Dumper.add_representer(str, _text)
for _tag, _rule in _NUMBERS:  # besides its own rules: quote text that any parser would read as a number
    _Dumper.add_implicit_resolver(_tag, _rule, list("-+0123456789."))


class _QuickDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes short plain texts in a quarter of the time, with LibYAML. It writes others otherwise in some cases."""

    yaml_representers = _Dumper.yaml_representers
    yaml_implicit_resolvers = _Dumper.yaml_implicit_resolvers
    ignore_aliases = _Dumper.ignore_aliases


def write(documents: list[dict[str, Any]]) -> str:
    """The documents as YAML, in the order of their keys."""
    dumper = _QuickDumper if _is_plain(documents) else _Dumper
    return yaml.dump_all(documents, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120)


_plain_text = re.compile(r"[ -~]{1,100}").fullmatch


def _is_plain(data: object) -> bool:
    """Whether all texts inside are short, of one line and ASCII."""
    if isinstance(data, str):
        return not data or _plain_text(data) is not None
    if isinstance(data, dict):
        return all(map(_is_plain, data.values())) and all(isinstance(key, str) and _plain_text(key) for key in data)
    return all(map(_is_plain, data)) if isinstance(data, list) else data is None or isinstance(data, bool | int | float)


def entries(data: object) -> Iterator[tuple[str, Any]]:
    """The keys (as text) and values of a mapping."""
    if isinstance(data, dict):
        yield from ((str(key), value) for key, value in data.items())
