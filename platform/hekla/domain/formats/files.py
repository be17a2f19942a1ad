"""The mounts of a pod template: files from ConfigMaps of the stream, in the working folder, and volumes."""

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from typing import Any

from hekla.domain.formats import volumes
from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.translation import translate
from hekla.domain.validation import join, quote
from hekla.domain.volumes import MAX_VOLUMES, WORKING_DIR, is_over, mount_path_problem

_KINDS = ("ConfigMap", volumes.CLAIM)


class Companions:
    """The documents next to the jobs of a stream: ConfigMaps and claims by name; and the files that were mounted."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.files: dict[str, Any] = {}
        self.claims: dict[str, dict[str, Any]] = {}
        self._data: dict[str, dict[str, Any]] = {}

    def add(self, document: dict[str, Any]) -> None:
        """Add a ConfigMap or a claim."""
        if document["kind"] == volumes.CLAIM:
            self._add_claim(document)
        else:
            self._add_config_map(document)

    def _add_claim(self, document: dict[str, Any]) -> None:
        name = Fields(document, volumes.CLAIM, self.findings).fields("metadata").text("name")
        fields = Fields(document, f"{volumes.CLAIM} {name}", self.findings)
        if volumes.is_deleted_with_job(document):
            self.claims[name] = volumes.claim(fields.fields("spec"))
        else:
            self.findings.not_honoured(
                fields.path, translate("create it in the cluster. Jobs can mount it by its name.")
            )

    def _add_config_map(self, document: dict[str, Any]) -> None:
        name = Fields(document, "ConfigMap", self.findings).fields("metadata").text("name")
        fields = Fields(document, f"ConfigMap {name}", self.findings)
        fields.ignore("apiVersion", "kind", "metadata")
        self._data[name] = fields.mapping("data")
        fields.close()

    def get(self, name: str) -> dict[str, Any] | None:
        """The texts of a ConfigMap by key; None if the stream does not have it."""
        return self._data.get(name)

    def mount(self, path: str, text: object, where: str) -> None:
        """Put a text at a path of the working folder. Two different texts at one path are a problem."""
        if self.files.setdefault(path, text) != text:
            message = translate(
                "Another file exists at {path}. All pods of a job get the same files.", path=quote(path)
            )
            self.findings.problem(where, message)


def report_unmounted(documents: Iterable[Any], mounted: Collection[str], findings: Findings) -> None:
    """Report claims of a stream that are not created because no job mounts them."""
    for document in documents:
        if is_companion(document) and document["kind"] == volumes.CLAIM and volumes.is_deleted_with_job(document):
            name = Fields(document, volumes.CLAIM, Findings()).fields("metadata").text("name")
            if name not in mounted:
                findings.not_honoured(f"{volumes.CLAIM} {name}", translate("no job mounts it, so it is not created."))


def is_companion(document: object) -> bool:
    """Whether the document is a ConfigMap or a claim."""
    return isinstance(document, dict) and document.get("kind") in _KINDS


class Mounts:
    """The volumes of one pod template; unsupported ones are reported.

    `shared`: the mounts of all templates' containers. `volume_mounts`: the container's mounts of the job's volumes,
    after `settle`.
    """

    def __init__(
        self,
        pod: Fields,
        companions: Companions,
        job_volumes: volumes.JobVolumes,
        shared: Iterable[volumes.MountRequest],
    ) -> None:
        self.companions, self.findings = companions, pod.findings
        self.volume_mounts: list[dict[str, Any]] = []
        self._volumes, self._shared = job_volumes, shared
        self._sources: dict[str, tuple[dict[str, Any], bool, str]] = {}
        self._texts: dict[str, dict[str, Any]] = {}
        self._reported: set[str] = set()
        self._places: set[PurePosixPath] = set()
        for volume in pod.list_of_fields("volumes"):
            self._add(volume)

    def _add(self, volume: Fields) -> None:
        name = volume.text("name")
        if (found := self._volumes.source(volume)) is not None:
            self._sources[name] = (*found, volume.path)
            volume.close()
            return
        source = volume.fields("configMap")
        data = self.companions.get(source.text("name")) if "configMap" in volume else None
        if data is None:
            self.findings.not_honoured(volume.path, _why_not(volume))
            self._reported.add(name)
            return
        self._texts[name] = _chosen(source, data)
        source.close()
        volume.close()

    def settle(self, container: Fields, working_dir: object, command: list[Any], target: str) -> object:
        """Mount the container's volumes. Returns its working folder, relative to the folder of the pod's files.

        `target`: the path of its task in the JobSpec.
        """
        mounts: list[tuple[Fields, str, PurePosixPath]] = []
        wanted: list[volumes.MountRequest] = []
        for mount in container.list_of_fields("volumeMounts"):
            name, path = mount.text("name"), mount.text("mountPath")
            if name in self._sources:
                wanted += self._wanted(mount, name)
                continue
            mount.ignore("readOnly")
            if name in self._texts:
                mounts.append((mount, name, PurePosixPath(path)))
                mount.close()
            elif name not in self._reported:
                self.findings.not_honoured(mount.path, translate("unknown volume {name}.", name=quote(name)))
        root, pod_folder = WORKING_DIR, working_dir
        if mounts and isinstance(working_dir, str | None):
            root = _root([path for _, _, path in mounts], working_dir)
            pod_folder = _relative_to_root(root, working_dir)
            for mount, name, folder in mounts:
                self._mount(mount, name, folder, root)
            self._look_for_absolute_paths(container, command, root)
        for one in (*wanted, *self._shared):
            self._add_mount(one, _below_work(root, one.path), target)
        return pod_folder

    def _wanted(self, mount: Fields, name: str) -> list[volumes.MountRequest]:
        """The mount of a supported volume; none for `subPathExpr`, which would mount all of the volume instead of a
        part.
        """
        if "subPathExpr" in mount:
            self.findings.not_honoured(mount.path, translate("paths with variables are not supported. Use subPath."))
            return []
        source, is_read_only, volume_at = self._sources[name]
        path, read_only = mount.take("mountPath"), mount.take("readOnly") or is_read_only or None
        more = {"sub_path": mount.take("subPath"), "read_only": read_only}
        mount.close()
        return [volumes.MountRequest(name, source, path, volume_at, mount.path, mount.at("mountPath"), more)]

    def _add_mount(self, wanted: volumes.MountRequest, path: object, target: str) -> None:
        """Add a mount, or report why it is left out."""
        if why := self._why_left_out(wanted, path):
            self.findings.not_honoured(wanted.at, why)
            return
        name = self._volumes.keep(wanted.name, wanted.source, wanted.volume_at)
        if name is None:
            self.findings.not_honoured(wanted.at, translate("a job has at most {most} volumes.", most=MAX_VOLUMES))
            return
        at = join(target, "volume_mounts", len(self.volume_mounts))
        self.findings.origins |= {at: wanted.at, join(at, "mount_path"): wanted.path_at}
        document = {"name": name, "mount_path": path, **wanted.more}
        self.volume_mounts.append({field: value for field, value in document.items() if value is not None})

    def _why_left_out(self, wanted: volumes.MountRequest, path: object) -> str:
        """Why the mount is left out; empty if it is possible, or if its path is invalid, a problem of its own."""
        if not isinstance(path, str) or not path.startswith("/"):
            return ""
        place = PurePosixPath("/", *PurePosixPath(path).parts[1:])
        if place in self._places:
            return translate("Another volume of the task is mounted at {path}.", path=wanted.path)
        if why := mount_path_problem(place, str(wanted.path)):
            return why
        if file := next((name for name in self.companions.files if is_over(place, WORKING_DIR / name)), None):
            return translate("The job's file {path} is there.", path=file)
        if len(self.volume_mounts) == MAX_VOLUMES:
            return translate("a task mounts at most {most} volumes.", most=MAX_VOLUMES)
        self._places.add(place)
        return ""

    def _mount(self, mount: Fields, name: str, path: PurePosixPath, root: PurePosixPath) -> None:
        if not path.is_relative_to(root):
            message = translate(
                "Files can be mounted only at {root} or below. Each pod has one working folder.",
                root=root,
            )
            self.findings.problem(mount.at("mountPath"), message)
            return
        folder = path.relative_to(root)
        for key, text in self._texts[name].items():
            target = str(folder / key)
            self.findings.origins[f"files.{target}"] = f"data.{key}"
            self.companions.mount(target, text, mount.path)

    def _look_for_absolute_paths(self, container: Fields, command: list[Any], root: PurePosixPath) -> None:
        if any(isinstance(word, str) and f"{root}/" in word for word in command):
            why = translate("{root} becomes the pod's working folder. Name files in it without {root}/.", root=root)
            self.findings.not_honoured(container.at("command"), why)


def _chosen(source: Fields, data: dict[str, Any]) -> dict[str, Any]:
    """The files of a volume: all keys, or those in `items`, at the paths given there."""
    if "items" not in source:
        return data
    chosen = {}
    for item in source.list_of_fields("items"):
        key, path = item.text("key"), item.text("path")
        if key in data:
            chosen[path] = data[key]
        else:
            item.findings.problem(item.at("key"), translate("The ConfigMap has no {key}.", key=quote(key)))
        item.close()
    return chosen


def _root(mounted: list[PurePosixPath], working_dir: str | None) -> PurePosixPath:
    """The folder that becomes the pod's: the working folder if files are mounted in it, else their first mount path."""
    if working_dir and any(path.is_relative_to(working_dir) for path in mounted):
        return PurePosixPath(working_dir)
    return mounted[0]


def _below_work(root: PurePosixPath, path: object) -> object:
    """The path of a volume in a pod whose working folder is `root` in the template."""
    if not isinstance(path, str) or not PurePosixPath(path).is_relative_to(root):
        return path
    return str(WORKING_DIR / PurePosixPath(path).relative_to(root))


def _why_not(volume: Fields) -> str:
    if "configMap" in volume:
        return translate("the text does not have this ConfigMap.")
    if "emptyDir" in volume:
        return translate("an emptyDir is on disk or in memory (medium: Memory).")
    if "hostPath" in volume:
        return translate("jobs cannot mount folders of the nodes. Mount a claim or an emptyDir.")
    return translate("only claims by name, emptyDirs and ConfigMaps in the same text are supported.")


def _relative_to_root(root: PurePosixPath, working_dir: str | None) -> str | None:
    if not working_dir or not PurePosixPath(working_dir).is_relative_to(root):
        return working_dir
    inner = str(PurePosixPath(working_dir).relative_to(root))
    return None if inner == "." else inner
