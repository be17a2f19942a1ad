"""Tools that Hekla starts in running pods, beside their programs: with the same files, environment and cards.

pod_script.py   runs in the pod: starts, looks after and ends one tool
tools.py        runs that script by the backend's exec, and records what it answers
pod_bundle.py   the Python client, its magics and a button of JupyterLab, for pods
kernels.py      asks JupyterLab which of its kernels are busy
idling.py       measures what keeps sessions, warns of idle ones, and ends those that stay idle

Above apps and backends, because it joins them; below pages and REST, which both use it.
"""
