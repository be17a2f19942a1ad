"""The arguments of spark-submit for a SparkApplication."""

from collections.abc import Iterator, Mapping
from typing import Any

from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.formats.spark_pods import SparkRole
from hekla.domain.translation import gettext_noop, translate

_LISTS = {
    "jars": "jars",
    "files": "files",
    "pyFiles": "py-files",
    "archives": "archives",
    "packages": "packages",
    "excludePackages": "exclude-packages",
    "repositories": "repositories",
}
"""Fields of `deps`, and the options of spark-submit for them."""
_OURS = (
    "spark.kubernetes.",
    "spark.master",
    "spark.submit.deployMode",
    "spark.driver.host",
    "spark.driver.bindAddress",
)
_PLATFORM = gettext_noop("the platform creates the pods and connects them.")


def arguments(reading: ManifestReader, spec: Fields, name: object, roles: tuple[SparkRole, SparkRole]) -> list[str]:
    """The words after the options that connect the driver: options, the application, and its own arguments."""
    driver, executor = roles
    words = [f"--name={name}"]
    if main := spec.text("mainClass"):
        words.append(f"--class={main}")
    words += [f"--driver-memory={driver.memory_mib}m", f"--executor-memory={executor.memory_mib}m"]
    words.append(f"--executor-cores={executor.cores}")
    settings = {
        **_settings(reading, spec),
        **{f"spark.hadoop.{key}": v for key, v in spec.mapping("hadoopConf").items()},
    }
    words += [f"--conf={key}={_text(value)}" for key, value in settings.items()]
    words += _dependencies(spec.fields("deps"))
    reading.findings.origins["tasks.0.command"] = spec.path
    program = spec.text("mainApplicationFile")
    if not program:
        message = translate("Required. It is the program that spark-submit starts.")
        spec.findings.problem(spec.at("mainApplicationFile"), message)
    return [*words, program, *map(_text, spec.sequence("arguments"))]


def _settings(reading: ManifestReader, spec: Fields) -> Mapping[str, Any]:
    found = spec.mapping("sparkConf")
    for name in found:
        if name.startswith(_OURS):
            reading.findings.not_honoured(f"{spec.at('sparkConf')}.{name}", translate(_PLATFORM))
    return {name: value for name, value in found.items() if not name.startswith(_OURS)}


def _dependencies(deps: Fields) -> Iterator[str]:
    for field, option in _LISTS.items():
        if items := deps.sequence(field):
            yield f"--{option}={','.join(map(_text, items))}"
    deps.close()


def _text(value: object) -> str:
    """A value of YAML as Java writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
