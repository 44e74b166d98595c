"""Ways out of a sandbox, as programs that try them.

Each is Python that ends without an error if it got out; one that changes files is
judged by the files outside instead. All are tried without a sandbox, too, so that it
is seen that they would work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Network = Literal["none", "tcp", "port"]

PRELUDE = """
import ctypes, errno, fcntl, json, mmap, os, resource, signal, socket, stat, struct
import sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
given = json.loads(sys.argv[1])
S, P, N = given["stage"], given["outsider"], given["numbers"]
PORT, OTHER = given["port"], given["other_port"]
secret, open_file = S + "/secret", S + "/readable/open"
def call(name, *arguments):
    words = [a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a)
             for a in arguments]
    result = libc.syscall(ctypes.c_long(N[name]), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result
def reaches(name, *arguments):
    try:
        call(name, *arguments)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            raise
def connect(port):
    with socket.socket() as s:
        s.connect(("127.0.0.1", port))
        assert s.recv(5) == b"hello"
"""


@dataclass(frozen=True)
class Escape:
    """One way out."""

    name: str
    code: str
    network: Network = "none"
    needs: str = ""
    """The protection that stops it, where not every sandbox has that."""

    control: Literal["anybody", "root", "never"] = "anybody"
    """Who gets out this way when there is no sandbox; `never`: it would do harm, or
    depends on the machine."""

    harms: bool = False
    """Whether the files outside tell, not the program: it may have made a mistake in
    a world of its own."""


READING = [
    Escape("read the password file", "open('/etc/shadow').read()", control="root"),
    Escape("read a file outside", "open(secret).read()"),
    Escape("read by dots", "open('../secret').read()"),
    Escape("read by a link", "os.symlink(secret, 'l'); open('l').read()"),
    Escape("read by a folder's link", "os.symlink(S, 'd'); open('d/secret').read()"),
    Escape("read by a hard link", "os.link(secret, 'h'); open('h').read()"),
    Escape("read by the root of proc", "open('/proc/self/root' + secret).read()"),
    Escape("read by the cwd of proc", "open('/proc/self/cwd/../secret').read()"),
    Escape("read what is hidden", "open(S + '/readable/hidden').read()"),
    Escape("read below what is hidden", "open(S + '/readable/cellar/box').read()"),
    Escape("read the database", "open(S + '/state/callboard.db', 'rb').read()"),
    Escape("read the database's log", "open(S + '/state/callboard.db-wal').read()"),
    Escape("read the settings", "open(S + '/callboard.toml').read()"),
    Escape("list a folder outside", "assert 'secret' in os.listdir(S)"),
    Escape("see a file outside", "os.stat(secret)", needs="hidden_paths"),
    Escape("read the memory of the machine", "open('/dev/mem').close()", control="never"),
    Escape("list disks", "assert os.listdir('/dev/disk')", control="never"),
]  # fmt: skip

HANDLE = """
handle = ctypes.create_string_buffer(struct.pack('=II', 8, 1) + bytes(128))
reaches('open_by_handle_at', -100, handle, 0)
"""
RACE = """
open('mine', 'w').write('mine')
def flip():
    for n in range(4000):
        try:
            os.symlink(('mine', secret)[n % 2], 'next'); os.replace('next', 'flip')
        except OSError: pass
flipper = threading.Thread(target=flip); flipper.start()
got = set()
while flipper.is_alive():
    try:
        os.chmod('flip', 0o777)
        got.add(open('flip').read())
    except OSError: pass
assert 'the secret' in got
"""

CHANGING = [
    Escape("write outside", "open(S + '/new', 'w')", harms=True),
    Escape("write a read-only file", "open(open_file, 'a').write('x')", harms=True),
    Escape("write the database", "open(S+'/state/callboard.db','a').write('x')", harms=True),
    Escape("write beside the database", "open(S+'/state/callboard.db-x','w')", harms=True),
    Escape("change the settings", "open(S+'/callboard.toml','a').write('x')", harms=True),
    Escape("empty a file", "os.truncate(secret, 0)", harms=True),
    Escape("empty by reading", "os.open(open_file, os.O_RDONLY|os.O_TRUNC)", harms=True),
    Escape("change a mode", "os.chmod(secret, 0o777)", harms=True),
    Escape("change a mode by descriptor", "os.fchmod(os.open(open_file, 0), 0o777)", harms=True),
    Escape("change a mode by a link", "os.symlink(secret,'k'); os.chmod('k',0o777)", harms=True),
    Escape("change a mode by dots", "os.chmod('../secret', 0o777)", harms=True),
    Escape("change a mode by path only", "f=os.open(secret,os.O_PATH); os.chmod(f'/proc/self/fd/{f}', 0o777)", harms=True),
    Escape("change a time", "os.utime(secret, (1, 1))", harms=True),
    Escape("change a time by descriptor", "os.utime(os.open(open_file, 0), (1, 1))", harms=True),
    Escape("change the owner", "os.chown(secret, 1, 1)", control="root", harms=True),
    Escape("label a file", "os.setxattr(open_file, 'user.x', b'1')", control="never"),
    Escape("move out", "open('x','w'); os.rename('x', S + '/moved')", harms=True),
    Escape("move in", "os.rename(secret, 'stolen')", harms=True),
    Escape("swap in", "open('x','w'); libc.renameat2(-100,b'x',-100,secret.encode(),2)", harms=True),
    Escape("remove", "os.unlink(secret)", harms=True),
    Escape("remove the database", "os.unlink(S + '/state/callboard.db')", harms=True),
    Escape("make a folder", "os.mkdir(S + '/folder')", harms=True),
    Escape("make a link", "os.symlink('/', S + '/readable/link')", harms=True),
    Escape("win a race with links", RACE, harms=True),
    Escape("open by handle", HANDLE, control="root"),
    Escape("make a setuid file by mode", "open('s','w'); os.chmod('s',0o4755); assert os.stat('s').st_mode & 0o4000"),
    Escape("make a setuid file at once", "os.umask(0); os.open('t', os.O_CREAT, 0o6755); assert os.stat('t').st_mode & 0o4000"),
    Escape("make a device", "os.mknod('m', stat.S_IFCHR | 0o666, os.makedev(1, 1))", control="root"),
]  # fmt: skip

NETWORK = [
    Escape("connect", "connect(PORT)"),
    Escape("connect to another port", "connect(OTHER)", network="port", needs="tcp_ports"),
    Escape("connect while sending", "socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', OTHER))", network="port", control="never"),
    Escape("listen", "socket.create_server(('127.0.0.1', 0))", network="tcp"),
    Escape("listen on any port", "socket.socket().listen()", network="tcp"),
    Escape("send a datagram", "socket.socket(2, 2).sendto(b'x', ('127.0.0.1', PORT))", network="tcp"),
    Escape("send a datagram by IPv6", "socket.socket(10, 2)", network="tcp", control="never"),
    Escape("make a raw socket", "socket.socket(2, 3, 1)", network="tcp", control="root"),
    Escape("make a packet socket", "socket.socket(17, 3, 0)", network="tcp", control="root"),
    Escape("ask the kernel by netlink", "socket.socket(16, 3, 0)", network="tcp"),
    Escape("reach the host of a machine", "socket.socket(40, 1)", network="tcp", control="never"),
    Escape("use multipath TCP", "socket.socket(2, 1, 262)", network="tcp", control="never"),
    Escape("connect to an abstract socket", "socket.socket(1).connect('\\0' + given['abstract'])"),
    Escape("connect to a socket's path", "socket.socket(1).connect(S + '/socket')"),
    Escape("send through a pair", "socket.socketpair(1, 2)[0].sendto(b'x', S + '/datagrams')", control="never"),
]  # fmt: skip

ENVIRON = """
found = b''
for pid in os.listdir('/proc'):
    if pid.isdigit():
        try: found += open(f'/proc/{pid}/environ', 'rb').read()
        except OSError: pass
assert b'PYTEST' in found
"""
MEMORY = """
local, remote = ctypes.create_string_buffer(8), 0x400000
class Vector(ctypes.Structure): _fields_ = [('b', ctypes.c_void_p), ('n', ctypes.c_size_t)]
a, b = Vector(ctypes.addressof(local), 8), Vector(remote, 8)
reaches('process_vm_readv', P, ctypes.addressof(a), 1, ctypes.addressof(b), 1, 0)
"""
PIDFD = "call('pidfd_getfd', os.pidfd_open(P), 0, 0)"
LEAK = """
found = []
for n in range(3, 1024):
    try: found.append(os.fstat(n))
    except OSError: pass
assert found
"""

PROCESSES = [
    Escape("read the parent's variables", "assert open(f'/proc/{P}/environ').read()"),
    Escape("read anybody's variables", ENVIRON),
    Escape("be given secret variables", "assert [k for k in os.environ if k.startswith(('PYTEST', 'CLAUDE'))]", control="never"),
    Escape("read the parent's memory", "open(f'/proc/{P}/mem', 'rb')"),
    Escape("read memory at once", MEMORY),
    Escape("see the parent's files", "os.listdir(f'/proc/{P}/fd')"),
    Escape("open the parent's files", "os.open(f'/proc/{P}/fd/0', os.O_RDONLY)", control="never"),
    Escape("enter the parent's folder", "os.listdir(f'/proc/{P}/cwd/')"),
    Escape("take the parent's descriptors", PIDFD),
    Escape("inherit a descriptor", LEAK, control="never"),
    Escape("see the parent", "os.stat(f'/proc/{P}')", needs="hidden_processes"),
    Escape("signal the parent", "os.kill(P, 0)", needs="signals"),
    Escape("signal by descriptor", "signal.pidfd_send_signal(os.pidfd_open(P), 0)", needs="signals"),
    Escape("trace the parent", "reaches('ptrace', 16, P, 0, 0)", control="never"),
    Escape("limit the parent", "resource.prlimit(P, resource.RLIMIT_CORE, resource.prlimit(P, resource.RLIMIT_CORE))"),
    Escape("slow the parent down", "os.setpriority(os.PRIO_PROCESS, P, os.getpriority(os.PRIO_PROCESS, P))"),
    Escape("slow everybody down", "os.setpriority(os.PRIO_USER, os.getuid(), 0)", control="never"),
    Escape("move the parent", "os.sched_setaffinity(P, os.sched_getaffinity(P))"),
    Escape("reschedule the parent", "os.sched_setscheduler(P, os.SCHED_OTHER, os.sched_param(0))"),
    Escape("share memory by key", "call('shmget', 0, 4096, 0o600)"),
    Escape("queue messages by key", "call('msgget', 0, 0o600)"),
    Escape("queue messages by name", "call('mq_open', b'callboard-test', 0o102, 0o600, 0)", control="never"),
]  # fmt: skip

CLONE = """
pid = call('clone', 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
if pid == 0: os._exit(0)
"""
WRONG_TABLE = """
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex('b814000000cd80c3'))
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
assert ctypes.CFUNCTYPE(ctypes.c_int)(at)() > 0
"""
X32 = "assert libc.syscall(ctypes.c_long(0x40000000 + 39)) > 0"
STATUS = "dict(l.split(':\\t') for l in open('/proc/self/status').read().splitlines())"
NEWEST = """
libc.syscall(ctypes.c_long(470), 0, 0)
assert ctypes.get_errno() != errno.ENOSYS
"""

KERNEL = [
    Escape("make a user namespace", "reaches('unshare', 0x10000000)"),
    Escape("make a network namespace", "reaches('unshare', 0x40000000)", control="root"),
    Escape("clone into a namespace", CLONE),
    Escape("clone the new way", "reaches('clone3', 0, 0)"),
    Escape("open the new way", "reaches('openat2', -100, b'/etc', 0, 0)"),
    Escape("enter a namespace", "reaches('setns', 0, 0)", control="never"),
    Escape("mount", "reaches('mount', b'none', b'.', b'tmpfs', 0, 0)", control="never"),
    Escape("mount the new way", "reaches('fsopen', b'tmpfs', 0)", control="root"),
    Escape("unmount", "reaches('umount2', b'.', 0)", control="root"),
    Escape("change the root", "reaches('chroot', b'.')", control="root"),
    Escape("swap the root", "reaches('pivot_root', b'.', b'.')", control="root"),
    Escape("trace itself", "reaches('ptrace', 0, 0, 0, 0)"),
    Escape("use io_uring", "reaches('io_uring_setup', 1, bytes(120))", control="never"),
    Escape("keep keys", "reaches('add_key', b'user', b'callboard', b'x', 1, -3)", control="never"),
    Escape("look at keys", "reaches('keyctl', 0, -3, 0)", control="never"),
    Escape("load a BPF program", "reaches('bpf', 5, bytes(120), 120)", control="root"),
    Escape("watch performance", "reaches('perf_event_open', bytes(120), 0, -1, -1, 0)", control="root"),
    Escape("handle page faults", "reaches('userfaultfd', 1)", control="never"),
    Escape("load a kernel", "reaches('kexec_load', 0, 99, 0, 0)", control="never"),
    Escape("load a module", "reaches('init_module', b'', 0, b'')", control="never"),
    Escape("restart the machine", "reaches('reboot', 0, 0, 0, 0)", control="root"),
    Escape("read the kernel's log", "reaches('syslog', 3, bytes(64), 64)", control="never"),
    Escape("set the clock", "reaches('clock_settime', 99, bytes(16))", control="root"),
    Escape("change the personality", "call('personality', 0x0040000)"),
    Escape("type into a terminal", "try:\n fcntl.ioctl(0, 0x5412, b'x')\nexcept OSError as e:\n assert e.errno != errno.EPERM"),
    Escape("call by another table", WRONG_TABLE, control="never"),
    Escape("call by the x32 table", X32, control="never"),
    Escape("call what is too new", NEWEST, control="never"),
    Escape("have privileges", f"assert int({STATUS}['CapEff'], 16)", control="root"),
    Escape("gain privileges", f"assert {STATUS}['NoNewPrivs'] == '0'"),
    Escape("switch the filter off", f"assert {STATUS}['Seccomp'] != '2'"),
]  # fmt: skip

LIMITS = [
    Escape("dump core", "resource.setrlimit(resource.RLIMIT_CORE, (1, 1))", control="never"),
    Escape("raise its memory", "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))", control="never"),
    Escape("take all memory", "bytearray(1 << 32)", control="never"),
    Escape("write a large file", "f = open('large', 'wb'); f.truncate(1 << 40)", control="never"),
    Escape("open many files", "[os.open('.', 0) for _ in range(5000)]", control="never"),
    Escape("go before others", "os.nice(-10)", control="never"),
]  # fmt: skip

ESCAPES = [*READING, *CHANGING, *NETWORK, *PROCESSES, *KERNEL, *LIMITS]
