"""What lies in `deploy/` starts the same processes as `manage.py up`, with settings that there are."""

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
_OF_OTHERS = {"DJANGO_SETTINGS_MODULE", "PYTHONPATH", "PYTHONUNBUFFERED", "FORWARDED_ALLOW_IPS"}


def of_unit(name: str) -> list[str]:
    (line,) = re.findall(r"^ExecStart=(.+)$", (UNITS / f"hekla-{name}.service").read_text(), re.MULTILINE)
    python, module, *argv = shlex.split(line.replace("%%", "%"))
    assert (Path(python).name, module) == ("python", "-m")
    return argv


def of_container(name: str) -> list[str]:
    python, module, *argv = COMPOSE["services"][name]["command"]
    assert (python, module) == ("python", "-m")
    return ["127.0.0.1" if word == "0.0.0.0" else word for word in argv]


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("of", [of_unit, of_container])
def test_each_process_is_started_as_up_starts_it(of, name) -> None:
    assert of(name) == commands_of_up()[name]


def test_what_is_set_is_a_setting() -> None:
    of_units = re.findall(r"^([A-Z_]+)=", (UNITS / "hekla.env").read_text(), re.MULTILINE)
    of_image = re.findall(r"([A-Z_]+)=", (DEPLOY / "compose" / "Dockerfile").read_text())
    names = {*of_units, *of_image, *COMPOSE["x-hekla"]["environment"]}
    assert names - _OF_OTHERS <= _KNOWN
    assert {"HEKLA_SECRET_KEY", "DATABASE_URL", "VALKEY_URL"} <= set(of_units) & set(COMPOSE["x-hekla"]["environment"])


def test_no_secret_has_a_default() -> None:
    text = (DEPLOY / "compose" / "compose.yaml").read_text()
    assert re.search(r"^HEKLA_SECRET_KEY=$", (UNITS / "hekla.env").read_text(), re.MULTILINE)
    assert all(":?" in use for use in re.findall(r"\$\{(?:HEKLA_SECRET_KEY|POSTGRES_PASSWORD)[^}]*\}", text))


def test_containers_wait_for_those_that_there_are() -> None:
    services = COMPOSE["services"]
    assert {*PROCESSES, "tables", "postgres", "valkey"} == set(services)
    assert all(set(service["depends_on"]) <= set(services) for service in services.values() if "depends_on" in service)


def test_the_image_copies_what_there_is() -> None:
    text = (DEPLOY / "compose" / "Dockerfile").read_text()
    sources = [word for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE) for word in line.split()[:-1]]
    assert sources
    assert all((CHECKOUT / source).exists() for source in sources)


def test_units_are_as_systemd_wants_them(tmp_path: Path) -> None:
    """Where systemd is, it is asked; the programs stand where this machine has them."""
    told = {}
    for unit in [*UNITS.glob("*.service"), *UNITS.glob("*.target")]:
        text = unit.read_text().replace("/opt/hekla/.venv/bin/python", "/bin/true").replace("User=hekla", "User=root")
        (tmp_path / unit.name).write_text(text)
        told[unit.name] = text
    wanted = set(re.findall(r"hekla-[a-z]+\.service", told["hekla.target"]))
    assert wanted == set(told) - {"hekla.target"}
    if analyze := shutil.which("systemd-analyze"):
        done = subprocess.run(
            [analyze, "verify", *sorted(map(str, tmp_path.iterdir()))], capture_output=True, text=True, check=False
        )
        assert not [line for line in done.stderr.splitlines() if "hekla" in line]
