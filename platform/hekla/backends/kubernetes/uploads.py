"""Writing files for people into running pods, by scripts in their containers.

A script opens the draft once and then uses only what it has opened: `/proc/self/fd/3` leads to the file itself,
whatever the pod puts in place of its name meanwhile. The scripts run as the user of the container, so the pod owns what
they write. A script that lost its connection may still write for a moment. So each piece first cuts the draft at its
own offset, and checks the size after it.
"""

import contextlib
import re
from collections.abc import Sequence

from hekla.backends.base import BackendError
from hekla.backends.file_paths import parts_of
from hekla.backends.files import NoSuchFileError
from hekla.backends.kubernetes.pod_scripts import ENTER, ENTER_AND_MAKE, WRONG_ANSWER, PodScripts
from hekla.backends.kubernetes.pod_streams import PodStreams
from hekla.backends.uploads import (
    MOST_BYTES,
    DraftFile,
    DraftLostError,
    FileConflictError,
    NoRoomError,
)
from hekla.domain.translation import gettext_noop
from hekla.domain.volumes import WORKING_DIR

NO_WRITING_TOOLS = gettext_noop(
    "The image of this pod has no shell with stat, head, dd and sha256sum, so its files cannot be changed."
)
NOT_WRITTEN = gettext_noop("The pod could not write the file. Its disk may be full or read-only.")

_CONFLICT, _LOST, _FAILED, _NO_ROOM, _NO_TOOLS = 46, 47, 48, 49, 45
_LONGEST_NAME = 255
_LEAST_RATE, _HASH_RATE = 128 * 1024, 16 * 2**20
"""Bytes per second that a pod must receive, and hash."""
_MOST_HASHED_FIRST = 64 * 2**20
"""Of a file that is replaced by its SHA-256: a larger one is compared only at the end, which may take longer."""
_MARK = re.compile(r"[0-9]{1,20}:[0-9]{1,20}")
_DIGEST = re.compile(r"[0-9a-f]{64}")

_BEGIN = """
draft=$1 target=$2 replaces=$3 size=$4 mark=$5 offset=$6 most_now=$7 most=$8
umask 022
for tool in stat head dd sha256sum; do command -v "$tool" >/dev/null || exit 45; done
"""
_ROOM = """
require_room() {
  space=$(stat -f -c '%a %b %S' . 2>/dev/null) || return 0
  set -- $space "$1"
  [ "$2" -gt 0 ] || return 0
  least=$(($2 / 20 * $3))
  [ "$least" -gt 1073741824 ] && least=1073741824
  [ $(($1 * $3 - $4)) -ge "$least" ] || exit 49
}
"""
_HASH = """
hash_of() {
  digest=$(head -c "$1" | sha256sum) || exit 45
  digest=${digest%% *}
}
"""
_EXPECTED = """
require_expected() {
  if [ -L "./$target" ]; then
    [ "$replaces" = '*' ] || exit 46
  elif [ -e "./$target" ]; then
    [ -n "$replaces" ] && [ -f "./$target" ] || exit 46
    [ "$replaces" = '*' ] && return 0
    held=$(stat -c %s -- "./$target") || exit 46
    [ "$held" -le "$most" ] || exit 46
    [ "$held" -le "$most_now" ] || return 0
    [ -r "./$target" ] || exit 46
    hash_of "$held" < "./$target"
    [ "$digest" = "$replaces" ] || exit 46
  else
    [ -z "$replaces" ] || [ "$replaces" = '*' ] || exit 46
  fi
}
"""
_OPEN = """
open_file() {
  [ ! -L "./$1" ] && [ -f "./$1" ] && [ -r "./$1" ] || exit 47
  command exec 3< "./$1" || exit 47
  facts=$(stat -L -c '%d:%i %h %f %s' /proc/self/fd/3) || exit 45
  case $facts in "$mark "$2" 8"*) ;; *) exit 47 ;; esac
  held=${facts##* }
}
"""
_CREATE = f"""{ENTER_AND_MAKE}{_BEGIN}{_ROOM}{_HASH}{_EXPECTED}
require_expected
require_room "$size"
set -C
command exec 3> "./$draft" || exit 48
stat -L -c '%d:%i' /proc/self/fd/3 || exit 45
"""
_APPEND = f"""{ENTER}{_BEGIN}{_ROOM}{_OPEN}
open_file "$draft" 1
[ "$held" -ge "$offset" ] || exit 47
require_room "$size"
dd if=/dev/null of=/proc/self/fd/3 bs=1 seek="$offset" count=0 2>/dev/null || exit 48
head -c "$size" >> /proc/self/fd/3 || exit 48
[ "$(stat -L -c %s /proc/self/fd/3)" = $((offset + size)) ] || exit 48
"""
_FINISH = f"""{ENTER}{_BEGIN}{_HASH}{_EXPECTED}{_OPEN}
open_file "$draft" 1
[ "$held" -eq "$size" ] || exit 47
[ -n "$replaces" ] || require_expected
hash_of "$size" <&3
found=$digest
if [ -n "$replaces" ]; then
  require_expected
  if [ -L "./$target" ]; then
    rm -f -- "./$target" || exit 48
  elif [ -e "./$target" ]; then
    mode=$(stat -c %a -- "./$target") && mode=000$mode && chmod "${{mode#"${{mode%???}}"}}" /proc/self/fd/3
  fi
  case $(mv --help 2>&1) in *-T*) flat=-T ;; *) flat= ;; esac
  mv -f $flat -- "./$draft" "./$target" || exit 48
else
  case $(ln --help 2>&1) in *-T*) flat=-T ;; *) flat= ;; esac
  ln $flat -- "./$draft" "./$target" 2>/dev/null || {{
    [ -e "./$target" ] || [ -L "./$target" ] || exit 48
    exit 46
  }}
  rm -f -- "./$draft"
fi
[ "$(stat -c '%d:%i' -- "./$target")" = "$mark" ] || exit 47
printf %s "$found"
"""
_NAMED = f"""{ENTER}{_BEGIN}{_HASH}{_OPEN}
open_file "$target" '?'
[ "$held" -eq "$size" ] || exit 47
rm -f -- "./$draft"
hash_of "$size" <&3
printf %s "$digest"
"""
_DISCARD = f"""{ENTER}
rm -f -- "./$1"
"""


class KubernetesUploads:
    """Implements `uploads.WritableFiles`. `root`: the working folder in the containers. Raises BackendError too."""

    def __init__(self, streams: PodStreams, root: str = str(WORKING_DIR)) -> None:
        self._scripts = PodScripts(streams, root)

    def create_draft(self, draft: DraftFile, size: int, *, replaces: str) -> str:
        """Make an empty draft beside its target."""
        facts = [replaces, str(size), "", "0", str(_MOST_HASHED_FIRST)]
        mark = self._run(_CREATE, draft, facts).strip()
        if not _MARK.fullmatch(mark):
            raise BackendError(WRONG_ANSWER)
        return mark

    def append(self, draft: DraftFile, offset: int, data: bytes) -> None:
        """Write the bytes at this offset. Others may have filled the disk since this upload began."""
        if data:
            facts = ["", str(len(data)), draft.mark, str(offset), "0"]
            self._run(_APPEND, draft, facts, data=data, more_seconds=len(data) / _LEAST_RATE)

    def finish(self, draft: DraftFile, size: int, *, replaces: str) -> str:
        """Name the draft like its target. What has the name afterwards is what was hashed."""
        facts = [replaces, str(size), draft.mark, "0", str(MOST_BYTES)]
        patience = size / _HASH_RATE
        try:
            answer = self._run(_FINISH, draft, facts, more_seconds=patience)
        except (DraftLostError, FileConflictError) as error:
            try:  # an earlier call, or one at the same time, may have named it
                answer = self._run(_NAMED, draft, facts, more_seconds=patience)
            except (DraftLostError, NoSuchFileError):
                raise error from None
        if not _DIGEST.fullmatch(answer):
            raise BackendError(WRONG_ANSWER)
        return answer

    def discard(self, draft: DraftFile) -> None:
        """Delete the draft, if it is there."""
        place = self._scripts.place(parts_of(draft.path)[:-1])
        with contextlib.suppress(NoSuchFileError):
            self._scripts.run(draft.key, _DISCARD, [*place, draft.name], draft.path)

    def _run(
        self, script: str, draft: DraftFile, facts: Sequence[str], *, data: bytes = b"", more_seconds: float = 0.0
    ) -> str:
        """The answer of a script about a draft. Raises what the scripts' exit codes mean."""
        parts = parts_of(draft.path)
        if not parts or any(len(part.encode(errors="replace")) > _LONGEST_NAME for part in parts):
            raise NoSuchFileError(draft.path)
        arguments = [*self._scripts.place(parts[:-1]), draft.name, parts[-1], *facts, str(MOST_BYTES)]
        errors = {
            _CONFLICT: FileConflictError(draft.path),
            _LOST: DraftLostError(draft.path),
            _FAILED: BackendError(NOT_WRITTEN),
            _NO_ROOM: NoRoomError(),
            _NO_TOOLS: BackendError(NO_WRITING_TOOLS),
        }
        answer = self._scripts.run(
            draft.key, script, arguments, draft.path, data=data, more_seconds=more_seconds, errors=errors
        )
        return answer.decode(errors="replace")
