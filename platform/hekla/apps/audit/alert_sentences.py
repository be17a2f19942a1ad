"""Sentences about what alert rules did."""

from django.utils.translation import gettext as _

from hekla.apps.event_log.models import LoggedEvent


def acted(event: LoggedEvent) -> str:
    """What an alert rule did, as a template."""
    found = {
        ("notify", "fire"): _("{actor}: {object} notified people about {about}."),
        ("notify", "clear"): _("{actor}: {object} notified people that {about} has cleared."),
        ("webhook", "fire"): _("{actor}: {object} called a webhook about {about}."),
        ("webhook", "clear"): _("{actor}: {object} called a webhook when {about} had cleared."),
        ("cordon", "fire"): _("{actor}: {object} cordoned {about}."),
        ("cordon", "clear"): _("{actor}: {object} uncordoned {about}."),
        ("label_node", "fire"): _("{actor}: {object} labelled {about}."),
        ("label_node", "clear"): _("{actor}: {object} removed its label from {about}."),
        ("hold_queue", "fire"): _("{actor}: {object} held a queue because of {about}."),
        ("hold_queue", "clear"): _("{actor}: {object} opened a queue again after {about}."),
        ("stop_job", "fire"): _("{actor}: {object} aborted {about}."),
        ("notify", "announce"): _("{actor}: {object} announced what it does about {about}."),
    }
    key = (event.payload.get("action", ""), event.payload.get("moment", ""))
    if event.payload.get("error") or key not in found:
        return _("{actor}: {object} could not act on {about}. {error}")
    return found[key]
