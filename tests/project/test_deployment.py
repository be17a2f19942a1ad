"""The files in `deploy/` start the same processes as `manage.py up`, with settings that exist."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.support.processes import PROCESSES, commands_of_up

from hekla.lib.checkout import CHECKOUT
from hekla.project.config import Config

DEPLOY = CHECKOUT / "deploy"
UNITS = DEPLOY / "systemd"
COMPOSE = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
_KNOWN = {field.validation_alias or f"HEKLA_{name.upper()}" for name, field in Config.model_fields.items()}
_OTHER_VARIABLES = {"DJANGO_SETTINGS_MODULE", "PYTHONPATH", "PYTHONUNBUFFERED"}


def unit_command(name: str) -> list[str]:
    (line,) = re.findall(r"^ExecStart=(.+)$", (UNITS / f"hekla-{name}.service").read_text(), re.MULTILINE)
    python, module, *argv = shlex.split(line.replace("%%", "%"))
    assert (Path(python).name, module) == ("python", "-m")
    return argv


def container_command(name: str) -> list[str]:
    python, module, *argv = COMPOSE["services"][name]["command"]
    assert (python, module) == ("python", "-m")
    return ["127.0.0.1" if word == "0.0.0.0" else word for word in argv]


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("command", [unit_command, container_command])
def test_each_process_has_the_command_of_up(command, name) -> None:
    assert command(name) == commands_of_up()[name]


def test_every_variable_is_a_setting() -> None:
    unit_settings = re.findall(r"^([A-Z_]+)=", (UNITS / "hekla.env").read_text(), re.MULTILINE)
    image_settings = re.findall(r"([A-Z_]+)=", (DEPLOY / "compose" / "Dockerfile").read_text())
    names = {*unit_settings, *image_settings, *COMPOSE["x-hekla"]["environment"]}
    assert names - _OTHER_VARIABLES <= _KNOWN
    assert {"HEKLA_SECRET_KEY", "DATABASE_URL", "VALKEY_URL"} <= set(unit_settings) & set(
        COMPOSE["x-hekla"]["environment"]
    )


def test_secrets_have_no_default() -> None:
    text = (DEPLOY / "compose" / "compose.yaml").read_text()
    assert re.search(r"^HEKLA_SECRET_KEY=$", (UNITS / "hekla.env").read_text(), re.MULTILINE)
    assert re.search(r"^VALKEY_URL=redis://:[^@]+@", (UNITS / "hekla.env").read_text(), re.MULTILINE)
    assert "--requirepass" in COMPOSE["services"]["valkey"]["command"][-1]
    assert COMPOSE["x-hekla"]["environment"]["VALKEY_URL"].startswith("redis://:${VALKEY_PASSWORD:?")
    assert all(
        ":?" in use for use in re.findall(r"\$\{(?:HEKLA_SECRET_KEY\b|POSTGRES_PASSWORD|VALKEY_PASSWORD)[^}]*\}", text)
    )


def test_container_dependencies_exist() -> None:
    services = COMPOSE["services"]
    assert {*PROCESSES, "tables", "postgres", "valkey"} == set(services)
    assert all(set(service["depends_on"]) <= set(services) for service in services.values() if "depends_on" in service)


def test_files_copied_into_the_image_exist() -> None:
    text = (DEPLOY / "compose" / "Dockerfile").read_text()
    sources = [word for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE) for word in line.split()[:-1]]
    assert sources
    assert all((CHECKOUT / source).exists() for source in sources)


def test_systemd_units_are_valid(tmp_path: Path) -> None:
    """The target wants every service. If systemd is installed, it verifies the units, with paths of this machine."""
    texts = {}
    for unit in [*UNITS.glob("*.service"), *UNITS.glob("*.target")]:
        text = unit.read_text().replace("/opt/hekla/.venv/bin/python", "/bin/true").replace("User=hekla", "User=root")
        (tmp_path / unit.name).write_text(text)
        texts[unit.name] = text
    wanted = set(re.findall(r"hekla-[a-z]+\.service", texts["hekla.target"]))
    assert wanted == set(texts) - {"hekla.target"}
    if analyze := shutil.which("systemd-analyze"):
        done = subprocess.run(
            [analyze, "verify", *sorted(map(str, tmp_path.iterdir()))], capture_output=True, text=True, check=False
        )
        assert not [line for line in done.stderr.splitlines() if "hekla" in line]
