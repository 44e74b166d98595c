"""The process above a confined program: starts it, watches it, clears up after it.

A fresh interpreter for each program, with a pipe to Callboard. Why not a function
between fork and exec: Callboard has threads, whose locks a fork copies as they are, and
memory full of secrets; and somebody must stay who finds what the program left behind.
That costs some ten milliseconds a start (`benchmarks/company/bench_sandbox.py`), little
beside what a model takes to ask for one.

Only the standard library, and little of it. When its line to Callboard is cut, also
by the end of Callboard itself, it ends everything it has started.
"""

from __future__ import annotations

import _socket
import marshal
import os
import select
import sys
import time

from connectors.sandbox.child.broker import Broker
from connectors.sandbox.child.confine import confine, run
from connectors.sandbox.child.descendants import descendants, end_all, resident
from connectors.sandbox.linux import landlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal

    from connectors.sandbox.child.confine import Plan
else:
    # Why: what `signal` adds to it are enumerations, a fifth of the start.
    import _signal as signal

PR_SET_CHILD_SUBREAPER = 36

LOOK_EVERY = 0.1
"""Seconds between two looks at how many processes there are, and at their memory. A
shell's fork bomb makes some hundred in it."""

FEW = 8
"""Processes up to which memory is not added up where their own limits bound it."""


def main(line: int) -> None:
    """Launch what the line says; tell it what became of that.

    Args:
        line: descriptor of a socket; a plan comes in, lines of text go out.
    """
    plan = read_plan(line)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wake, woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, ignore)
    landlock.prctl(PR_SET_CHILD_SUBREAPER, 1)
    is_scoped = os.getpid() == 1 or landlock.scope_signals(plan["abi"])
    try:
        pid, listener = start(plan)
    except OSError as error:
        tell(line, f"refused {error.strerror or error}")
        return
    # Why: the program's end is the end of its output; nobody else may hold it open.
    for standard in (0, 1, 2):
        os.close(standard)
    os.open(os.devnull, os.O_RDWR)
    os.dup2(0, 1)
    os.dup2(0, 2)
    tell(line, "started")
    broker = Broker(listener, plan["roots"]) if listener >= 0 else None
    watch = Watch(plan, line, wake, broker)
    code = watch.run(pid)
    end_all(is_scoped=is_scoped)
    tell(line, f"ended {code} {int(watch.has_overrun)}")
    # Tearing an interpreter down takes longer than all that came before.
    os._exit(0)


def ignore(number: int, frame: object) -> None:
    """Do nothing: what counts of a signal is that it wakes the watch."""


def read_plan(line: int) -> Plan:
    """Read the plan: eight bytes that say how long it is, then that."""
    size = int.from_bytes(read_exactly(line, 8), "big")
    plan: Plan = marshal.loads(read_exactly(line, size))  # noqa: S302  our own parent
    return plan


def read_exactly(line: int, size: int) -> bytes:
    """Read so many bytes.

    Raises:
        EOFError: the line was cut.
    """
    found = b""
    while len(found) < size:
        piece = os.read(line, size - len(found))
        if not piece:
            raise EOFError
        found += piece
    return found


def tell(line: int, text: str) -> None:
    """Write a line of text, if anybody is still there to read it."""
    try:
        os.write(line, f"{text}\n".encode())
    except OSError:
        return


def start(plan: Plan) -> tuple[int, int]:
    """Fork, confine, exec.

    Returns:
        The child's process id, and where its calls wait for a verdict, or -1.

    Raises:
        OSError: the child could not be confined, or its program not be run.
    """
    ours, theirs = _socket.socketpair()
    pid = os.fork()
    if pid == 0:
        become(plan, theirs)
    theirs.close()
    listener = -1
    refusal = b""
    while True:
        piece, extra, _, _ = ours.recvmsg(4096, _socket.CMSG_SPACE(4))
        for _, _, descriptors in extra:
            listener = int.from_bytes(descriptors[:4], sys.byteorder)
        if not piece:
            break
        refusal += piece
    ours.close()
    refusal = refusal.removeprefix(b"+")
    if not refusal:
        return pid, listener
    os.waitpid(pid, 0)
    raise OSError(0, refusal.decode(errors="replace"))


def become(plan: Plan, line: _socket.socket) -> None:
    """Be the child: confine itself and run the program; never returns."""
    try:
        listener = confine(plan, line.fileno())
        if listener >= 0:
            rights = listener.to_bytes(4, sys.byteorder)
            line.sendmsg([b"+"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
            os.close(listener)
        run(plan)
    except BaseException as error:  # noqa: BLE001  this process ends here
        text = f"{type(error).__name__}: {error}"
        line.send(text.encode())
    finally:
        os._exit(127)


class Watch:
    """Waits for the program's end, or ends it.

    Args:
        plan: says how many processes there may be.
        line: to Callboard; once it is cut, all is over.
        wake: readable when a child has ended.
        broker: answers calls, if there are any to answer.
    """

    def __init__(self, plan: Plan, line: int, wake: int, broker: Broker | None) -> None:
        self.has_overrun = False
        self._plan = plan
        self._line = line
        self._wake = wake
        self._broker = broker
        self._poll = select.poll()
        self._poll.register(line, select.POLLIN)
        self._poll.register(wake, select.POLLIN)
        if broker is not None:
            self._poll.register(broker.listener, select.POLLIN)

    def run(self, pid: int) -> int:
        """Watch until the program has ended or must end.

        Returns:
            Its exit code, minus its signal's number; -9 when it must end.
        """
        next_look = time.monotonic() + LOOK_EVERY
        while True:
            left = next_look - time.monotonic()
            events = dict(self._poll.poll(max(0, left * 1000)))
            if self._line in events:
                return -signal.SIGKILL
            if self._wake in events:
                os.read(self._wake, 4096)
                code = reap(pid)
                if code is not None:
                    return code
            self._hear(events)
            # Not only when nothing happens: programs could see to it that much does.
            if time.monotonic() >= next_look:
                if self._is_too_much():
                    self.has_overrun = True
                    return -signal.SIGKILL
                next_look = time.monotonic() + LOOK_EVERY

    def _hear(self, events: dict[int, int]) -> None:
        if self._broker is None or self._broker.listener not in events:
            return
        if events[self._broker.listener] & select.POLLIN:
            self._broker.answer()
        else:
            # All who could ask are gone.
            self._poll.unregister(self._broker.listener)
            self._broker.close()
            self._broker = None

    def _is_too_much(self) -> bool:
        found = descendants(os.getpid())
        if len(found) > self._plan["processes"]:
            return True
        memory = self._plan["memory"]
        is_bounded = self._plan["limits"].get("RLIMIT_AS") == memory
        if not memory or (is_bounded and len(found) <= FEW):
            return False
        return resident(found) > memory


def reap(wanted: int) -> int | None:
    """Take note of every child that has ended; give the wanted one's exit code."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == wanted:
            code = os.waitstatus_to_exitcode(status)
