"""Fails where a test was skipped for a reason that is not a fact about the machine."""

import re
import sys
from xml.etree import ElementTree

# Each is something that a machine may lack and that a test run could not bring along.
ALLOWED = (
    r"no Chromium on this machine",
    r"no OpenSSH client on this machine",
    r"no (Kubernetes control plane|Helm|Volcano): no Go on this machine",
    r"no (Kubernetes control plane|Helm|Volcano): the Go modules cannot be had",
    r"no Podman: (the tests do not run as root|this machine has no|the packages cannot be had)",
    r"no Podman: the system gives users no namespaces",
    r"this machine has one CPU",
    r"no control group of CPUs can be written here",
)


def main(path: str) -> int:
    """Print every skipped test and its reason; 1 where one of them is not allowed."""
    refused = 0
    for case in ElementTree.parse(path).iter("testcase"):  # noqa: S314  (pytest wrote it a moment ago)
        for skipped in case.iter("skipped"):
            reason = skipped.get("message", "")
            is_allowed = any(re.search(pattern, reason, re.IGNORECASE) for pattern in ALLOWED)
            refused += not is_allowed
            verdict = "skipped" if is_allowed else "skipped without need"
            sys.stdout.write(f"{verdict}: {case.get('classname')}.{case.get('name')}: {reason}\n")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
