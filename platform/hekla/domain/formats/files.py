"""Files that a manifest ships in ConfigMaps and mounts into the folder in which its containers work."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.sentences import said
from hekla.domain.validation import shown


class ConfigMaps:
    """The ConfigMaps of a stream by name, and the files that were mounted from them."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.files: dict[str, Any] = {}
        self._data: dict[str, dict[str, Any]] = {}

    def add(self, document: Mapping[str, Any]) -> None:
        """Take one ConfigMap of the stream."""
        name = Fields(document, "ConfigMap", self.findings).fields("metadata").text("name")
        fields = Fields(document, f"ConfigMap {name}", self.findings)
        fields.ignore("apiVersion", "kind", "metadata")
        self._data[name] = fields.mapping("data")
        fields.close()

    def get(self, name: str) -> dict[str, Any] | None:
        """The texts of a ConfigMap by their keys; None where the stream does not hold it."""
        return self._data.get(name)

    def mount(self, path: str, text: object, where: str) -> None:
        """Put a text at a path of the working folder; two different ones cannot be at one place."""
        if self.files.setdefault(path, text) != text:
            told = said("Another file is at {path} already: all pods of a job get the same files.", path=shown(path))
            self.findings.problem(where, told)


class Mounts:
    """The volumes of one pod template that are ConfigMaps of the stream; the others are reported."""

    def __init__(self, pod: Fields, config_maps: ConfigMaps) -> None:
        self.config_maps, self.findings = config_maps, pod.findings
        self._texts: dict[str, dict[str, Any]] = {}
        self._reported: set[str] = set()
        for volume in pod.list_of_fields("volumes"):
            self._add(volume)

    def _add(self, volume: Fields) -> None:
        name = volume.text("name")
        source = volume.fields("configMap")
        data = self.config_maps.get(source.text("name")) if "configMap" in volume else None
        if data is None:
            missing, other = said("the text holds no such ConfigMap."), said("only ConfigMaps in the same text are.")
            self.findings.not_honoured(volume.path, missing if "configMap" in volume else other)
            self._reported.add(name)
            return
        self._texts[name] = _chosen(source, data)
        source.close()
        volume.close()

    def settle(self, container: Fields, working_dir: object, command: list[Any]) -> object:
        """Mount what the container mounts; answers its working folder, as seen from the folder of the pod's files."""
        mounts: list[tuple[Fields, str, PurePosixPath]] = []
        for mount in container.list_of_fields("volumeMounts"):
            name, path = mount.text("name"), mount.text("mountPath")
            mount.ignore("readOnly")
            if name in self._texts:
                mounts.append((mount, name, PurePosixPath(path)))
                mount.close()
            elif name not in self._reported:
                self.findings.not_honoured(mount.path, said("there is no volume {name}.", name=shown(name)))
        if not mounts or not isinstance(working_dir, str | None):
            return working_dir
        root = _root([path for _, _, path in mounts], working_dir)
        for mount, name, folder in mounts:
            self._mount(mount, name, folder, root)
        self._look_for_absolute_paths(container, command, root)
        return _seen_from(root, working_dir)

    def _mount(self, mount: Fields, name: str, path: PurePosixPath, root: PurePosixPath) -> None:
        if not path.is_relative_to(root):
            told = said(
                "Files can be mounted at {root} and below it, not elsewhere: pods have one folder of their own.",
                root=root,
            )
            self.findings.problem(mount.at("mountPath"), told)
            return
        folder = path.relative_to(root)
        for key, text in self._texts[name].items():
            target = str(folder / key)
            self.findings.origins[f"files.{target}"] = f"data.{key}"
            self.config_maps.mount(target, text, mount.path)

    def _look_for_absolute_paths(self, container: Fields, command: list[Any], root: PurePosixPath) -> None:
        if any(isinstance(word, str) and f"{root}/" in word for word in command):
            why = said("{root} becomes the pod's working folder, so name files in it without {root}/.", root=root)
            self.findings.not_honoured(container.at("command"), why)


def _chosen(source: Fields, data: dict[str, Any]) -> dict[str, Any]:
    """The files of a volume: all keys, or those that `items` names, at the paths that it gives."""
    if "items" not in source:
        return data
    chosen = {}
    for item in source.list_of_fields("items"):
        key, path = item.text("key"), item.text("path")
        if key in data:
            chosen[path] = data[key]
        else:
            item.findings.problem(item.at("key"), said("The ConfigMap has no {key}.", key=shown(key)))
        item.close()
    return chosen


def _root(mounted: list[PurePosixPath], working_dir: str | None) -> PurePosixPath:
    """The folder that stands for the pod's own: the working one if files are mounted in it, else where they are."""
    if working_dir and any(path.is_relative_to(working_dir) for path in mounted):
        return PurePosixPath(working_dir)
    return mounted[0]


def _seen_from(root: PurePosixPath, working_dir: str | None) -> str | None:
    if not working_dir or not PurePosixPath(working_dir).is_relative_to(root):
        return working_dir
    inner = str(PurePosixPath(working_dir).relative_to(root))
    return None if inner == "." else inner
