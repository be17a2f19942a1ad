"""Small shell scripts that run in the containers of hostile pods, for their files.

What they answer is bounded in bytes and time. They get names as arguments and never as parts of their text. They enter
a path part by part and follow no link: after each step, the shell asks the system where it is, so a link that appears
between the check and the step leads nowhere either. A pod can cheat, but only with its own files.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence

from hekla.backends.base import BackendError, PodKey, UnknownPod
from hekla.backends.files import NoSuchFileError
from hekla.backends.kubernetes.pod_streams import ExecStream, PodStreams
from hekla.domain.translation import gettext_noop
from hekla.domain.volumes import WORKING_DIR

NO_TOOLS = gettext_noop("The image of this pod has no shell with stat and head, so its files cannot be read.")
NOT_RUNNING = gettext_noop("Files of pods on this cluster can be read only while the pod runs.")
NO_ANSWER = gettext_noop("The pod did not answer in time.")
WRONG_ANSWER = gettext_noop("The pod answered something else than its files.")

_ENTER = """
cd -P -- "$1" 2>/dev/null || exit 43
shift
depth=$1
shift
while [ "$depth" -gt 0 ]; do
  [ -L "./$1" ] && exit 44
  %s
  above=${PWD%%/}
  cd -P -- "./$1" 2>/dev/null || exit 44
  [ "$PWD" = "$above/$1" ] || exit 44
  shift
  depth=$((depth - 1))
done
"""
ENTER = _ENTER % ":"
"""Goes to the folder that `PodScripts.place` names, and leaves the other arguments."""
ENTER_AND_MAKE = _ENTER % '[ -e "./$1" ] || mkdir -- "./$1" 2>/dev/null || exit 44'
"""The same; missing folders are made."""
_NO_ROOT, _MISSING, _UNSUPPORTED, _NO_SHELL = 43, 44, 45, (126, 127)
_REPORT = re.compile(rb"=([0-9]{1,3})\Z")
_ANSWER_SECONDS = 8.0
_MOST_ANSWER = 4 * 2**20


class PodScripts:
    """Runs scripts in pods. `root`: the working folder in the containers."""

    def __init__(self, streams: PodStreams, root: str = str(WORKING_DIR)) -> None:
        self._streams, self._root = streams, root

    def place(self, parts: Sequence[str]) -> list[str]:
        """The first arguments of a script: the folder that it enters."""
        return [self._root, str(len(parts)), *parts]

    def run(
        self,
        key: PodKey,
        script: str,
        arguments: Sequence[str],
        path: str,
        *,
        data: bytes = b"",
        more_seconds: float = 0.0,
        errors: Mapping[int, Exception] | None = None,
    ) -> bytes:
        """The output of a script that gets `data` as its input.

        `errors`: what an exit code means, before the codes of all scripts. Raises NoSuchFileError, BackendError.
        """
        try:
            answered = asyncio.run(self._answer(key, reporting_command(script, arguments), data, more_seconds))
        except UnknownPod as error:
            raise BackendError(NOT_RUNNING) from error
        except TimeoutError as error:
            raise BackendError(NO_ANSWER) from error
        code, answer = _reported(*answered)
        if code is not None and errors and code in errors:
            raise errors[code]
        if code in (_UNSUPPORTED, *_NO_SHELL):
            raise BackendError(NO_TOOLS)
        if code in (_MISSING, _NO_ROOT):
            raise NoSuchFileError(path)
        if code != 0:
            raise BackendError(WRONG_ANSWER)
        return answer

    async def _answer(
        self, key: PodKey, command: Sequence[str], data: bytes, more_seconds: float
    ) -> tuple[int | None, bytes]:
        """The exit code and the output of a command. Raises BackendError, TimeoutError."""
        answer, length = bytearray(), 0
        async with (
            asyncio.timeout(_ANSWER_SECONDS + more_seconds),
            self._streams.run(key, command) as running,
            _sending(running, data),
        ):
            while (piece := await running.receive()) is not None:
                length += len(piece.data)
                if not piece.is_error:
                    answer += piece.data
                if length > _MOST_ANSWER:
                    raise BackendError(WRONG_ANSWER)
            return running.exit_code, bytes(answer)


@contextlib.asynccontextmanager
async def _sending(running: ExecStream, data: bytes) -> AsyncIterator[None]:
    """Send the input while the output is read: a command that ends before it has read all still says why."""
    if not data:
        yield
        return

    async def send() -> None:
        with contextlib.suppress(BackendError):
            await running.send(data)
            await running.end_input()

    task = asyncio.create_task(send())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def script_command(script: str, arguments: Sequence[str]) -> list[str]:
    """The command that runs a script with these arguments."""
    return ["sh", "-c", script, "hekla", *arguments]


def reporting_command(script: str, arguments: Sequence[str]) -> list[str]:
    """The same; its exit code is printed behind its output too, since not every node passes it on."""
    return ["sh", "-c", 'sh -c "$@"; printf "=%d" "$?"', "hekla", script, "hekla", *arguments]


def _reported(code: int | None, answer: bytes) -> tuple[int | None, bytes]:
    """The exit code and the output of a script, from those of its reporting command."""
    printed = _REPORT.search(answer)
    return (int(printed[1]), answer[: printed.start()]) if printed and code == 0 else (code, answer)
