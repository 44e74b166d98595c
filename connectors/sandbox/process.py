"""Starts confined programs, and leaves nothing of them behind.

Each program gets a launcher and a folder for its temporary files. The launcher is sent
a plan over a socket, answers in lines of text, and ends with everything below it when
the socket is closed; the folder is removed then. Of long output the beginning and the
end are kept, and the bytes between are counted.
"""

from __future__ import annotations

import itertools
import socket
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import trio

from connectors.sandbox.linux.landlock import PORTS_SINCE
from connectors.sandbox.orders import Job, Means, Orders, orders
from connectors.sandbox.plan import (
    KILLED,
    Confinement,
    Finished,
    Network,
    SandboxError,
    Standing,
    Territory,
)
from runtime.fairness import FairLimiter
from runtime.telemetry.logs import EventLog

LOG = EventLog("sandbox")


@asynccontextmanager
async def temporary_folder() -> AsyncGenerator[Path]:
    """Make a folder, and remove it with all that is in it at the block's end."""
    made = await trio.to_thread.run_sync(make_folder)
    try:
        yield made
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(remove, made)


def make_folder() -> Path:
    """Make a private folder, inside of one that only we know.

    Raises:
        SandboxError: the disk says no.
    """
    try:
        around = Path(tempfile.mkdtemp(prefix="callboard-"))
        made = around / "tmp"
        made.mkdir(mode=0o700)
    except OSError as error:
        raise SandboxError(
            f"no folder for temporary files: {error}; free some space, or set TMPDIR"
        ) from error
    return made


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it; what cannot be is said in the log.

    Why not `shutil.rmtree`: whoever filled it may have closed folders, and nested them
    deeper than a path or Python's stack can go. So each folder is moved up to the top
    before it is emptied.
    """
    around = folder.parent
    try:
        waiting = [folder]
        for number in itertools.count():
            if not waiting:
                break
            place = waiting.pop()
            place.chmod(0o700)
            for depth, inner in enumerate(empty(place)):
                inner.chmod(0o700)
                waiting.append(inner.rename(around / f"{number}-{depth}"))
            place.rmdir()
        around.rmdir()
    except OSError as error:
        LOG.warning(
            "a program's temporary files stay", folder=str(around), why=str(error)
        )


def empty(place: Path) -> list[Path]:
    """Remove the files of a folder; give the folders in it."""
    folders: list[Path] = []
    for path in list(place.iterdir()):
        if path.is_dir() and not path.is_symlink():
            folders.append(path)
        else:
            path.unlink()
    return folders


class Capture:
    """What was written so far, within bounds.

    Args:
        most: bytes that are kept; half of them from the beginning.
    """

    def __init__(self, most: int) -> None:
        self._first_most = most - most // 2
        self._last_most = most // 2
        self._first = bytearray()
        self._last = bytearray()
        self.total = 0
        """Bytes that were written, kept or not."""

    def add(self, piece: bytes) -> None:
        """Take in what was written next."""
        self.total += len(piece)
        room = self._first_most - len(self._first)
        self._first += piece[:room]
        self._last += piece[room:]
        # Why twice: moving the end with each small piece would cost more than it holds.
        if len(self._last) > 2 * self._last_most:
            del self._last[: len(self._last) - self._last_most]

    @property
    def missing(self) -> int:
        """Bytes that were not kept."""
        return max(0, self.total - self._first_most - self._last_most)

    def text(self) -> bytes:
        """Give what was kept, and say between how much is missing."""
        missing = self.missing
        if not missing:
            return bytes(self._first + self._last)
        note = f"\n[... {missing} bytes left out ...]\n".encode()
        last = self._last[len(self._last) - self._last_most :]
        return bytes(self._first) + note + bytes(last)


class LauncherSocket:
    """The socket to a launcher."""

    def __init__(self, own: socket.socket) -> None:
        self._socket = trio.socket.from_stdlib_socket(own)
        self._stream = trio.SocketStream(self._socket)
        self._left = b""
        self._lock = trio.Lock()
        self._end: tuple[int, bool] | None = None

    async def order(self, plan: bytes) -> None:
        """Send the plan, and wait until the program runs.

        Raises:
            SandboxError: it does not.
        """
        try:
            await self._stream.send_all(plan)
        except trio.BrokenResourceError:
            text = ""
        else:
            text = await self._read()
        if text != "started":
            raise SandboxError(text.removeprefix("refused "))

    async def ended(self) -> tuple[int, bool]:
        """Wait for the program's end: its exit code, and whether it was too much."""
        async with self._lock:
            if self._end is None:
                _, *words = (await self._read()).split() or [""]
                self._end = (
                    (int(words[0]), words[1] == "1") if words else (KILLED, False)
                )
            return self._end

    def cut(self) -> None:
        """Have the launcher end everything."""
        try:
            self._socket.shutdown(trio.socket.SHUT_WR)
        except OSError:
            return  # it is gone

    async def aclose(self) -> None:
        """Close our end."""
        await self._stream.aclose()

    async def _read(self) -> str:
        """Read a line; nothing once the launcher is gone."""
        while b"\n" not in self._left:
            try:
                piece = await self._stream.receive_some(4096)
            except trio.BrokenResourceError:
                piece = b""
            if not piece:
                return ""
            self._left += piece
        line, _, self._left = self._left.partition(b"\n")
        return line.decode(errors="replace")


START_TIMEOUT = 30.0
"""Seconds until a launcher must have started its program."""

END_TIMEOUT = 10.0
"""Seconds until a launcher must have ended everything; then it is killed itself."""

MOST_RUNNING = 32
"""Programs that `run` has running at once; more wait."""

FLOOD = 64 * 1024 * 1024
"""Bytes above what is kept, until a program that writes without end is killed."""

PIECE = 65536


class Launched:
    """A confined program that runs."""

    def __init__(self, process: trio.Process, line: LauncherSocket) -> None:
        self._process = process
        self._line = line
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        if stdin is None or stdout is None or stderr is None:
            raise SandboxError("a program was started without pipes")
        self.stdin: trio.abc.SendStream = stdin
        """What it reads."""
        self.stdout: trio.abc.ReceiveStream = stdout
        """What it writes; has to be read, or it waits."""
        self.stderr: trio.abc.ReceiveStream = stderr
        """What it complains; likewise."""

    async def wait(self) -> int:
        """Wait for its end; give its exit code, or minus the signal's number."""
        code, _ = await self._line.ended()
        return code

    async def has_overrun(self) -> bool:
        """Whether it was killed because it, with what it started, became too much."""
        _, has_overrun = await self._line.ended()
        return has_overrun

    def kill(self) -> None:
        """End it, with everything it has started."""
        self._line.cut()


class LaunchingSandbox:
    """Starts programs confined.

    Args:
        territory: what no program may reach.
        most: programs that `run` has running at once; more wait.
    """

    def __init__(
        self,
        standing: Standing,
        means: Means,
        territory: Territory,
        most: int = MOST_RUNNING,
    ) -> None:
        self.standing = standing
        self._means = means
        self._territory = territory
        self._running = FairLimiter(most)

    @property
    def narrowest_tcp(self) -> Network:
        """TCP, to as few ports as this machine can limit it to."""
        return frozenset({1}) if self._means.abi >= PORTS_SINCE[0][0] else "tcp"

    async def run(  # noqa: PLR0913  all but the first by name
        self,
        command: Sequence[str],
        *,
        confinement: Confinement,
        cwd: Path,
        timeout: float,  # noqa: ASYNC109  part of the result, not only of the wait
        max_output: int,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        owner: str = "",
    ) -> Finished:
        """Run a program to its end.

        Args:
            command: program and arguments; no shell reads them.
            confinement: what it may do.
            cwd: its current folder, and `HOME`; has to be given to it as well.
            timeout: seconds until it is killed with everything it has started.
            max_output: most bytes kept of each of stdout and stderr.
            env: added to the few variables it is given (`PATH`, `LANG`, ...).
            owner: see `Sandbox.run`.

        Raises:
            SandboxError: it cannot be confined so, or not be started; it has not run.
        """
        async with (
            self._running.place(owner),
            self.open_process(
                command, confinement=confinement, cwd=cwd, env=env
            ) as confined,
        ):
            talk = Talk(confined, max_output)
            return await talk.run(stdin, timeout)

    @asynccontextmanager
    async def open_process(
        self,
        command: Sequence[str],
        *,
        confinement: Confinement,
        cwd: Path,
        env: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[Launched]:
        """Run a program with pipes for as long as the block; arguments as for `run`.

        At the block's end it is killed with everything it has started, and awaited.

        Raises:
            SandboxError: as for `run`.
        """
        async with AsyncExitStack() as stack:
            temporary = await stack.enter_async_context(temporary_folder())
            job = Job(command, confinement, cwd, env or {}, temporary)
            made = await trio.to_thread.run_sync(
                orders, self._means, self._territory, job
            )
            yield await stack.enter_async_context(launched(made))


@asynccontextmanager
async def launched(made: Orders) -> AsyncGenerator[Launched]:
    """Start a launcher and its program; at the block's end both are gone."""
    own, theirs = socket.socketpair()
    line = LauncherSocket(own)
    try:
        with theirs:
            process = await open_launcher([*made.line, str(theirs.fileno())], theirs)
        try:
            yield await started(process, line, made.plan)
        finally:
            with trio.CancelScope(shield=True):
                await end(process, line)
    finally:
        with trio.CancelScope(shield=True):
            await line.aclose()


async def open_launcher(line: Sequence[str], theirs: socket.socket) -> trio.Process:
    """Start the process of a launcher.

    Raises:
        SandboxError: it cannot be started.
    """
    try:
        return await trio.lowlevel.open_process(
            line,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(),),
            env={},
            cwd="/",
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise SandboxError(f"{line[0]} cannot be started: {error}") from error


async def started(process: trio.Process, line: LauncherSocket, plan: bytes) -> Launched:
    """Wait until the program runs.

    Raises:
        SandboxError: it does not.
    """
    confined = Launched(process, line)
    with trio.move_on_after(START_TIMEOUT) as scope:
        try:
            await line.order(plan)
        except SandboxError as error:
            text = str(error) or await last_words(confined)
            raise SandboxError(f"the program was not started: {text}") from error
    if scope.cancelled_caught:
        raise SandboxError(f"the launcher did not start within {START_TIMEOUT:g} s")
    return confined


async def last_words(confined: Launched) -> str:
    """Read what a launcher, or bubblewrap, said when it failed."""
    said = Capture(2000)
    with trio.move_on_after(1):
        await collect(confined.stderr, said, confined)
    lines = said.text().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "its launcher ended without a word"


async def end(process: trio.Process, line: LauncherSocket) -> None:
    """End a launcher and everything below it, and wait for that."""
    line.cut()
    with trio.move_on_after(END_TIMEOUT):
        await line.ended()
        await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            await stream.aclose()


class Talk:
    """One program's input and output, from its start to its end.

    Args:
        max_output: most bytes kept of each of its outputs.
    """

    def __init__(self, confined: Launched, max_output: int) -> None:
        self._confined = confined
        self._out = Capture(max_output)
        self._err = Capture(max_output)
        self._code = KILLED

    async def run(self, stdin: bytes, timeout: float) -> Finished:  # noqa: ASYNC109
        """Feed it, and take in what it writes, until it ends or must."""
        begin = trio.current_time()
        confined = self._confined
        with trio.move_on_after(timeout) as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._feed, stdin)
                nursery.start_soon(collect, confined.stdout, self._out, confined)
                nursery.start_soon(collect, confined.stderr, self._err, confined)
                self._code = await self._confined.wait()
        timed_out = scope.cancelled_caught
        self._confined.kill()
        return Finished(
            returncode=KILLED if timed_out else self._code,
            stdout=self._out.text(),
            stderr=self._err.text(),
            was_cut=bool(self._out.missing or self._err.missing),
            timed_out=timed_out,
            flooded=is_flood(self._out) or is_flood(self._err),
            overran=not timed_out and await self._confined.has_overrun(),
            seconds=trio.current_time() - begin,
        )

    async def _feed(self, stdin: bytes) -> None:
        async with self._confined.stdin:
            try:
                await self._confined.stdin.send_all(stdin)
            except trio.BrokenResourceError:
                return  # it does not want to read it


async def collect(
    stream: trio.abc.ReceiveStream, capture: Capture, confined: Launched
) -> None:
    """Take in what a program writes; kill it if there is no end of it."""
    while piece := await stream.receive_some(PIECE):
        capture.add(bytes(piece))
        if is_flood(capture):
            confined.kill()
            return


def is_flood(capture: Capture) -> bool:
    """Whether more was written than anybody could want."""
    return capture.missing > FLOOD
