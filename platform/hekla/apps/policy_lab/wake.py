"""Wakes the task that runs experiments."""

from hekla.apps.wakeups import Wakeup

running = Wakeup("hekla.policy_lab.run")
