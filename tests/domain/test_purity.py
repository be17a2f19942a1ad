"""The domain does not import the web framework, the task queue or a Kubernetes client."""

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "platform"
SCRIPT = """
import pkgutil, sys
import hekla.domain
for module in pkgutil.walk_packages(hekla.domain.__path__, "hekla.domain."):
    __import__(module.name)
print(sorted({name.split(".")[0] for name in sys.modules} & {"django", "celery", "kubernetes", "channels", "psycopg"}))
"""


def test_domain_loads_without_django_celery_or_kubernetes():
    answer = subprocess.run([sys.executable, "-c", SCRIPT], cwd=SOURCE, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_engine_loads_without_pydantic():
    script = "import sys, hekla.engine; print('pydantic' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", script], cwd=SOURCE, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
