"""Changes files' modes and times for a confined program, where it may.

Landlock sees neither `chmod` nor `utimensat`: a confined program could make any file
of the same user unreadable, or readable to all. The filter therefore hands these
calls to the launcher, which finds out which file is meant, and makes the call itself
if that file lies beneath a writable folder.

The file is opened once and named by its descriptor from then on, so that a path
which means something else a moment later changes nothing.
Source: the kernel's `Documentation/userspace-api/seccomp_filter.rst`, "Userspace
Notification".
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct

from connectors.sandbox.linux import landlock

RECEIVE, SEND, IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
REQUEST = struct.Struct("=QIIiIQ6Q")
RESPONSE = struct.Struct("=QqiI")
TIMES = struct.Struct("=qqqq")

AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH = 0x100, 0x1000
MOST_PATH, PAGE = 4096, 4096
MODE_BITS = 0o1777
"""What is set of a mode; who runs as whom is the filter's business, and refused."""

NAMES = {
    "x86_64": {
        90: "chmod", 91: "fchmod", 268: "fchmodat", 452: "fchmodat2",
        132: "utime", 235: "utimes", 261: "futimesat", 280: "utimensat",
    },
    "aarch64": {
        52: "fchmod", 53: "fchmodat", 452: "fchmodat2", 88: "utimensat",
    },
}  # fmt: skip


class Broker:
    """Answers the calls that a filter hands over.

    Args:
        listener: where they wait; closed by `close`.
        roots: real paths of the folders in which files may be changed.
    """

    def __init__(self, listener: int, roots: list[str]) -> None:
        self.listener = listener
        self._roots = roots
        self._names = NAMES[os.uname().machine]

    def answer(self) -> None:
        """Answer one call."""
        request = bytearray(REQUEST.size)
        try:
            fcntl.ioctl(self.listener, RECEIVE, request)
        except OSError:
            return  # its caller was killed
        identity, pid, _, number, _, _, *arguments = REQUEST.unpack(request)
        code = 0
        try:
            self._carry_out(identity, pid, self._names[number], arguments)
        except OSError as error:
            code = -(error.errno or errno.EPERM)
        try:
            fcntl.ioctl(
                self.listener, SEND, bytearray(RESPONSE.pack(identity, 0, code, 0))
            )
        except OSError:
            return  # likewise

    def close(self) -> None:
        """Hear no more; calls that come then fail."""
        os.close(self.listener)

    def _carry_out(
        self, identity: int, pid: int, name: str, arguments: list[int]
    ) -> None:
        caller = Caller(pid)
        found = caller.open(name, arguments)
        try:
            value = caller.value(name, arguments)
            # Another process may have its number by now; what was read is then not
            # what this caller asked for.
            fcntl.ioctl(self.listener, IS_VALID, struct.pack("=Q", identity))
            self._check(found)
            change(found, value)
        finally:
            os.close(found)

    def _check(self, found: int) -> None:
        path = os.readlink(f"/proc/self/fd/{found}")  # noqa: PTH115  no pathlib here
        if not any(
            path == root or path.startswith(root.rstrip("/") + "/")
            for root in self._roots
        ):
            raise OSError(errno.EACCES, "outside of what may be changed")


class Caller:
    """The process that asks: its memory, and its view of paths.

    Args:
        pid: of its thread.
    """

    def __init__(self, pid: int) -> None:
        self._place = f"/proc/{pid}"

    def open(self, name: str, arguments: list[int]) -> int:
        """Find the file that a call means; give a descriptor that only names it."""
        first, second, _, fourth, *_ = arguments
        if name == "fchmod":
            return self._own(first)
        if name in {"chmod", "utime", "utimes"}:
            return self._at(AT_FDCWD, first, 0)
        flags = {"fchmodat2": fourth, "utimensat": fourth}.get(name, 0)
        if name in {"utimensat", "futimesat"} and not second:
            return self._own(first)
        return self._at(first, second, flags)

    def value(self, name: str, arguments: list[int]) -> int | bytes:
        """Read what is to be set: a mode, or two times in the form of `utimensat`."""
        match name:
            case "chmod" | "fchmod":
                return arguments[1] & MODE_BITS
            case "fchmodat" | "fchmodat2":
                return arguments[2] & MODE_BITS
            case "utime":
                return self._times(arguments[1], "=qq", (1, 0, 1, 0))
            case "utimes":
                return self._times(arguments[1], "=qqqq", (1, 1000, 1, 1000))
            case _:
                scale = 1 if name == "utimensat" else 1000
                return self._times(arguments[2], "=qqqq", (1, scale, 1, scale))

    def _own(self, descriptor: int) -> int:
        return os.open(f"{self._place}/fd/{signed(descriptor)}", os.O_PATH)

    def _at(self, folder: int, address: int, flags: int) -> int:
        path = self._text(address)
        if not path:
            if not flags & AT_EMPTY_PATH:
                raise OSError(errno.ENOENT, "no path")
            return self._own(folder)
        how = os.O_PATH
        if flags & AT_SYMLINK_NOFOLLOW:
            how |= os.O_NOFOLLOW
        if path.startswith(b"/"):
            return os.open(self._meant(path), how)
        at = signed(folder)
        place = "cwd" if at == AT_FDCWD else f"fd/{at}"
        base = os.open(f"{self._place}/{place}", os.O_PATH | os.O_DIRECTORY)
        try:
            return os.open(path, how, dir_fd=base)
        finally:
            os.close(base)

    def _meant(self, path: bytes) -> bytes:
        """Read `self` as the caller, as the C library writes it for descriptors."""
        own = b"/proc/self/"
        if path.startswith(own):
            return self._place.encode() + b"/" + path.removeprefix(own)
        return path

    def _times(self, address: int, form: str, scales: tuple[int, ...]) -> bytes:
        if not address:
            return b""
        raw = self._memory(address, struct.calcsize(form))
        found = list(struct.unpack(form, raw))
        if len(found) == 2:
            found = [found[0], 0, found[1], 0]
        return TIMES.pack(*(n * s for n, s in zip(found, scales, strict=True)))

    def _text(self, address: int) -> bytes:
        found = b""
        while len(found) <= MOST_PATH:
            # Up to the page's end: what lies behind it may not be there.
            piece = self._memory(address, PAGE - address % PAGE)
            text, end, _ = piece.partition(b"\0")
            found += text
            if end:
                return found
            address += len(piece)
        raise OSError(errno.ENAMETOOLONG, "the path is too long")

    def _memory(self, address: int, size: int) -> bytes:
        memory = os.open(f"{self._place}/mem", os.O_RDONLY)
        try:
            return os.pread(memory, size, address)
        except (OSError, OverflowError) as error:
            raise OSError(errno.EFAULT, "no such address") from error
        finally:
            os.close(memory)


def signed(number: int) -> int:
    """Read the lower half of an argument as the C int that it is."""
    low = number & 0xFFFFFFFF
    return low - (1 << 32) if low & 0x80000000 else low


def change(found: int, value: int | bytes) -> None:
    """Set mode or times of the file that a descriptor names.

    Raises:
        OSError: the file system says no.
    """
    place = f"/proc/self/fd/{found}"
    if isinstance(value, int):
        os.chmod(place, value)  # noqa: PTH101  no pathlib here
        return
    times = value or None
    if landlock.LIBC.utimensat(AT_FDCWD, place.encode(), times, 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
