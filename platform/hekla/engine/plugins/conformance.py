"""Pods that the cluster itself needs are never victims. It has a say only where pods are evicted."""

from hekla.engine.policy import PluginOption
from hekla.engine.session import Session


def open_session(_session: Session, _option: PluginOption) -> None:
    """Nothing to say to the actions that place pods."""
