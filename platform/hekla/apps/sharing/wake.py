"""Wakes the task that copies the files of forks."""

from hekla.apps.wakeups import Wakeup

copying = Wakeup("hekla.job_forks.copy")
