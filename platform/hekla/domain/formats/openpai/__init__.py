"""JobConfigs, the manifests of OpenPAI: YAML of protocol version 2, and the older JSON."""

from hekla.domain.formats.openpai.v1 import OPENPAI_V1
from hekla.domain.formats.openpai.v2 import OPENPAI

__all__ = ["OPENPAI", "OPENPAI_V1"]
