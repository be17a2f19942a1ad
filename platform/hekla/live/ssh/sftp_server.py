"""A server of SFTP, version 3, on standard input and output, with the rights of whoever runs it.

It runs in pods whose images have no OpenSSH. Therefore it is one file, imports nothing of Hekla, and asks for no newer
Python than 3.6. Requests are answered one after the other.
"""

import errno
import os
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Dict, Tuple  # noqa: UP035  (Python 3.6)

Reply = Tuple[int, bytes]  # noqa: UP006
Attributes = Dict[int, Tuple[int, ...]]  # noqa: UP006

VERSION = 3
MAX_PACKET_BYTES = 512 * 1024
MAX_READ_BYTES = 256 * 1024
MAX_HANDLES = 200
_NAMES_AT_ONCE = 100
_OK, _EOF, _NO_SUCH_FILE, _DENIED, _FAILURE, _BAD, _UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8
_VERSION, _STATUS, _HANDLE, _DATA, _NAME, _ATTRIBUTES = 2, 101, 102, 103, 104, 105
_INIT = 1
_SIZE, _OWNER, _MODE, _TIMES = 1, 2, 4, 8
_READ, _WRITE, _APPEND, _CREATE, _TRUNCATE, _EXCLUSIVE = 1, 2, 4, 8, 16, 32
_CODES = {errno.ENOENT: _NO_SUCH_FILE, errno.EACCES: _DENIED, errno.EPERM: _DENIED}
_SIX_MONTHS = 182 * 86400


class SftpFailure(Exception):
    """A status other than success."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class SftpFields:
    """The fields of a packet, in their order."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise SftpFailure(_BAD, "The packet is too short")
        self._at += count
        return found

    def byte(self) -> int:
        return self._take(1)[0]

    def number(self) -> int:
        return int(struct.unpack(">I", self._take(4))[0])

    def long(self) -> int:
        return int(struct.unpack(">Q", self._take(8))[0])

    def text(self) -> bytes:
        return self._take(self.number())

    def attributes(self) -> Attributes:
        """Those that the packet sets, by their flag."""
        flags = self.number()
        found: Attributes = {}
        if flags & _SIZE:
            found[_SIZE] = (self.long(),)
        if flags & _OWNER:
            found[_OWNER] = (self.number(), self.number())
        if flags & _MODE:
            found[_MODE] = (self.number(),)
        if flags & _TIMES:
            found[_TIMES] = (self.number(), self.number())
        return found


def text(data: bytes) -> bytes:
    """A text, with its length before it."""
    return struct.pack(">I", len(data)) + data


def attributes(found: os.stat_result) -> bytes:
    """What is known of a file."""
    times = [max(0, min(int(one), 0xFFFFFFFF)) for one in (found.st_atime, found.st_mtime)]
    ids = [one & 0xFFFFFFFF for one in (found.st_uid, found.st_gid)]
    return struct.pack(">IQIIIII", _SIZE | _OWNER | _MODE | _TIMES, found.st_size, *ids, found.st_mode, *times)


def long_name(name: bytes, found: os.stat_result) -> bytes:
    """A line as `ls -l` prints it; clients show it."""
    is_old = abs(time.time() - found.st_mtime) > _SIX_MONTHS
    at = time.strftime("%b %d  %Y" if is_old else "%b %d %H:%M", time.localtime(found.st_mtime))
    head = f"{stat.filemode(found.st_mode)} {found.st_nlink:4} {found.st_uid:<8} {found.st_gid:<8} {found.st_size:>10}"
    return f"{head} {at} ".encode() + name


class SftpServer:
    """Answers requests. A handle is a number of a file, or the rest of a listing."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source, self._sink = source, sink
        self._files: dict[bytes, int] = {}
        self._listings: dict[bytes, tuple[bytes, Iterator[os.DirEntry[bytes]]]] = {}
        self._count = 0
        self._verbs: dict[int, Callable[[SftpFields], Reply]] = {
            3: self._open, 4: self._close, 5: self._read, 6: self._write, 7: self._lstat, 8: self._fstat,
            9: self._setstat, 10: self._fsetstat, 11: self._opendir, 12: self._readdir, 13: self._remove,
            14: self._mkdir, 15: self._rmdir, 16: self._realpath, 17: self._stat, 18: self._rename,
            19: self._readlink, 20: self._symlink, 200: self._extended,
        }  # fmt: skip

    def serve(self) -> None:
        """Reply until the input ends."""
        while True:
            head = self._source.read(4)
            if len(head) < 4:  # noqa: PLR2004
                return
            size = struct.unpack(">I", head)[0]
            if not 0 < size <= MAX_PACKET_BYTES:
                return
            packet = self._source.read(size)
            if len(packet) < size:
                return
            self._answer(packet[0], SftpFields(packet[1:]))

    def _answer(self, kind: int, fields: SftpFields) -> None:
        if kind == _INIT:
            names = (b"posix-rename@openssh.com", b"hardlink@openssh.com", b"fsync@openssh.com")
            self._send(_VERSION, struct.pack(">I", VERSION) + b"".join(text(name) + text(b"1") for name in names))
            return
        request = fields.number()
        try:
            if kind not in self._verbs:
                raise SftpFailure(_UNSUPPORTED, "Not supported")
            answer, body = self._verbs[kind](fields)
        except SftpFailure as refusal:
            answer, body = _STATUS, self._status(refusal.code, str(refusal))
        except OSError as error:
            code = _CODES.get(error.errno or 0, _FAILURE)
            answer, body = _STATUS, self._status(code, error.strerror or "Failure")
        except (ValueError, OverflowError) as error:
            answer, body = _STATUS, self._status(_FAILURE, str(error))
        self._send(answer, struct.pack(">I", request) + body)

    def _send(self, kind: int, body: bytes) -> None:
        self._sink.write(struct.pack(">IB", len(body) + 1, kind) + body)
        self._sink.flush()

    @staticmethod
    def _status(code: int, message: str) -> bytes:
        return struct.pack(">I", code) + text(message.encode()) + text(b"en")

    def _ok(self) -> Reply:
        return _STATUS, self._status(_OK, "Success")

    def _new_handle(self) -> bytes:
        if len(self._files) + len(self._listings) >= MAX_HANDLES:
            raise SftpFailure(_FAILURE, "Too many open files")
        self._count += 1
        return str(self._count).encode()

    def _file(self, fields: SftpFields) -> int:
        handle = fields.text()
        if handle not in self._files:
            raise SftpFailure(_FAILURE, "Unknown handle")
        return self._files[handle]

    # Files

    def _open(self, fields: SftpFields) -> Reply:
        path, wanted, named = fields.text(), fields.number(), fields.attributes()
        flags = {_READ: os.O_RDONLY, _WRITE: os.O_WRONLY}.get(wanted & (_READ | _WRITE), os.O_RDWR)
        for flag, own in (
            (_APPEND, os.O_APPEND),
            (_CREATE, os.O_CREAT),
            (_TRUNCATE, os.O_TRUNC),
            (_EXCLUSIVE, os.O_EXCL),
        ):
            flags |= own if wanted & flag else 0
        handle = self._new_handle()
        self._files[handle] = os.open(path or b".", flags, named.get(_MODE, (0o666,))[0] & 0o7777)
        return _HANDLE, text(handle)

    def _close(self, fields: SftpFields) -> Reply:
        handle = fields.text()
        if self._listings.pop(handle, None) is None:
            if handle not in self._files:
                raise SftpFailure(_FAILURE, "Unknown handle")
            os.close(self._files.pop(handle))
        return self._ok()

    def _read(self, fields: SftpFields) -> Reply:
        number, offset, count = self._file(fields), fields.long(), fields.number()
        data = os.pread(number, min(count, MAX_READ_BYTES), offset)
        if not data:
            raise SftpFailure(_EOF, "End of file")
        return _DATA, text(data)

    def _write(self, fields: SftpFields) -> Reply:
        number, offset, data = self._file(fields), fields.long(), fields.text()
        while data:
            count = os.pwrite(number, data, offset)
            data, offset = data[count:], offset + count
        return self._ok()

    # Attributes

    def _lstat(self, fields: SftpFields) -> Reply:
        return _ATTRIBUTES, attributes(os.lstat(fields.text() or b"."))

    def _stat(self, fields: SftpFields) -> Reply:
        return _ATTRIBUTES, attributes(os.stat(fields.text() or b"."))

    def _fstat(self, fields: SftpFields) -> Reply:
        return _ATTRIBUTES, attributes(os.fstat(self._file(fields)))

    def _setstat(self, fields: SftpFields) -> Reply:
        return self._change(fields.text(), fields.attributes())

    def _fsetstat(self, fields: SftpFields) -> Reply:
        return self._change(self._file(fields), fields.attributes())

    def _change(self, where: Any, wanted: Attributes) -> Reply:  # noqa: ANN401
        if _SIZE in wanted:
            os.truncate(where, *wanted[_SIZE])
        if _OWNER in wanted:
            os.chown(where, *wanted[_OWNER])
        if _MODE in wanted:
            os.chmod(where, wanted[_MODE][0] & 0o7777)
        if _TIMES in wanted:
            os.utime(where, wanted[_TIMES])  # type: ignore[arg-type]
        return self._ok()

    # Folders

    def _opendir(self, fields: SftpFields) -> Reply:
        path = fields.text() or b"."
        handle = self._new_handle()
        self._listings[handle] = path, os.scandir(path)
        return _HANDLE, text(handle)

    def _readdir(self, fields: SftpFields) -> Reply:
        handle = fields.text()
        if handle not in self._listings:
            raise SftpFailure(_FAILURE, "Unknown handle")
        path, rest = self._listings[handle]
        entries: list[bytes] = []
        for entry in rest:
            try:
                found = os.lstat(os.path.join(path, entry.name))
            except OSError:  # it has gone meanwhile
                continue
            entries.append(text(entry.name) + text(long_name(entry.name, found)) + attributes(found))
            if len(entries) == _NAMES_AT_ONCE:
                break
        if not entries:
            raise SftpFailure(_EOF, "End of the folder")
        return _NAME, struct.pack(">I", len(entries)) + b"".join(entries)

    def _mkdir(self, fields: SftpFields) -> Reply:
        path, named = fields.text(), fields.attributes()
        os.mkdir(path, named.get(_MODE, (0o777,))[0] & 0o7777)
        return self._ok()

    def _rmdir(self, fields: SftpFields) -> Reply:
        os.rmdir(fields.text())
        return self._ok()

    # Names

    def _remove(self, fields: SftpFields) -> Reply:
        os.unlink(fields.text())
        return self._ok()

    def _realpath(self, fields: SftpFields) -> Reply:
        return self._one_name(os.path.realpath(fields.text() or b"."))

    def _readlink(self, fields: SftpFields) -> Reply:
        return self._one_name(os.readlink(fields.text()))

    @staticmethod
    def _one_name(name: bytes) -> Reply:
        return _NAME, struct.pack(">I", 1) + text(name) + text(name) + struct.pack(">I", 0)

    def _rename(self, fields: SftpFields) -> Reply:
        old, new = fields.text(), fields.text()
        if os.path.lexists(new):  # version 3 never replaces a file
            raise SftpFailure(_FAILURE, "The file exists")
        os.rename(old, new)
        return self._ok()

    def _symlink(self, fields: SftpFields) -> Reply:
        target, link = fields.text(), fields.text()  # in the order of OpenSSH, not of the draft
        os.symlink(target, link)
        return self._ok()

    def _extended(self, fields: SftpFields) -> Reply:
        name = fields.text()
        if name == b"posix-rename@openssh.com":
            os.replace(fields.text(), fields.text())
        elif name == b"hardlink@openssh.com":
            os.link(fields.text(), fields.text())
        elif name == b"fsync@openssh.com":
            os.fsync(self._file(fields))
        else:
            raise SftpFailure(_UNSUPPORTED, "Not supported")
        return self._ok()


if sys.argv[0] == "-c":
    SftpServer(sys.stdin.buffer, sys.stdout.buffer).serve()
