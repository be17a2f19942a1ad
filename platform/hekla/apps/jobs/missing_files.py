"""Why a file or folder of a pod cannot be read."""

from django.utils.translation import gettext as _

from hekla.apps.jobs.models import Pod
from hekla.apps.sentences import translated


def no_files(pod: Pod) -> str:
    """Why the files of this pod are not offered."""
    if pod.job.cluster.is_simulated:
        return _("The pods of this job are simulated and write no files.")
    sentence = _(
        "Files of pods on cluster %(name)s are not listed here. Let the job write its results to a volume that you can "
        "open elsewhere, or copy them while the pod runs: kubectl cp."
    )
    return sentence % {"name": pod.job.cluster}


def unreadable(pod: Pod, why: str) -> str:
    """Why the files of a pod cannot be read now. `why`: in the words of its backend."""
    if pod.is_final:
        return _("The pod has ended. On this cluster, files can be read only while a pod runs.")
    return _("The files of this pod cannot be read now. %(why)s") % {"why": translated(why)}


def unwritable(pod: Pod, why: str) -> str:
    """Why no file of the pod can be written now. `why`: in the words of its backend."""
    if pod.is_final:
        return _("The pod has ended. On this cluster, files can be changed only while a pod runs.")
    return _("The files of this pod cannot be changed now. %(why)s") % {"why": translated(why)}


def no_uploads(pod: Pod) -> str:
    """Why no file can be written into the folder of this pod."""
    if pod.job.cluster.is_simulated:
        return _("The pods of this job are simulated and write no files.")
    return _("Cluster %(name)s takes no files. Copy them while the pod runs: kubectl cp.") % {"name": pod.job.cluster}


def no_folder(pod: Pod) -> str:
    """Why the pod has no such folder."""
    if pod.job.deleted_at:
        return _("The files of a deleted job are deleted.")
    if pod.started_at is None:
        return _("The pod has not started, so it has no files.")
    return _("The pod has no such folder. It was deleted, or a link is in its place.")


def no_file(pod: Pod) -> str:
    """Why the pod has no such file."""
    if pod.job.deleted_at:
        return _("The files of a deleted job are deleted.")
    return _("The pod has no such file. It was deleted, or a link is in its place.")
