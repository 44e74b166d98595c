"""System calls: their numbers, and what the filter thinks of them.

Pure tables. Source: the kernel's `arch/x86/entry/syscalls/syscall_64.tbl` and
`scripts/syscall.tbl` (aarch64), up to Linux 6.18.
"""

from __future__ import annotations

from dataclasses import dataclass

HIGHEST_CALL = 468
"""`file_getattr`: the last call that was looked at. Newer ones are not there, as on an
older kernel."""

DENIED_NAMES = """
    ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd
    perf_event_open bpf userfaultfd mount umount2 pivot_root chroot move_mount
    fsopen fsconfig fsmount fspick open_tree open_tree_attr mount_setattr
    statmount listmount setns keyctl add_key request_key io_uring_setup
    io_uring_enter io_uring_register kexec_load kexec_file_load init_module
    finit_module delete_module reboot swapon swapoff acct quotactl quotactl_fd
    syslog settimeofday clock_settime clock_adjtime adjtimex iopl ioperm
    modify_ldt sethostname setdomainname vhangup lookup_dcookie fanotify_init
    fanotify_mark open_by_handle_at uselib ustat create_module get_kernel_syms
    query_module nfsservctl migrate_pages move_pages _sysctl shmget shmat shmctl
    msgget msgsnd msgrcv msgctl semget semop semtimedop semctl mq_open mq_unlink
    chown lchown fchown fchownat setxattr lsetxattr fsetxattr setxattrat
    removexattr lremovexattr fremovexattr removexattrat file_setattr vserver
"""
DENIED = frozenset(DENIED_NAMES.split())
"""Never allowed: they reach other processes, the kernel or the machine, or outlive the
program."""

BROKERED_NAMES = """
    chmod fchmod fchmodat fchmodat2 utime utimes futimesat utimensat
"""
BROKERED = frozenset(BROKERED_NAMES.split())
"""What changes a file's mode and times by path, which Landlock does not see."""


@dataclass(frozen=True)
class Architecture:
    """One kind of processor, as the kernel counts its calls."""

    audit: int
    """`AUDIT_ARCH_...`: which table of numbers a call was made by."""

    numbers: dict[str, int]
    has_x32: bool = False
    """Whether a bit in the number chooses yet another table."""


# Name, then its number on x86_64 and on aarch64; -1: it is not there.
NUMBERS: tuple[tuple[str, int, int], ...] = (
    ("_sysctl", 156, -1),
    ("acct", 163, 89),
    ("add_key", 248, 217),
    ("adjtimex", 159, 171),
    ("bind", 49, 200),
    ("bpf", 321, 280),
    ("chmod", 90, -1),
    ("chown", 92, -1),
    ("chroot", 161, 51),
    ("clock_adjtime", 305, 266),
    ("clock_settime", 227, 112),
    ("clone", 56, 220),
    ("clone3", 435, 435),
    ("creat", 85, -1),
    ("create_module", 174, -1),
    ("delete_module", 176, 106),
    ("fanotify_init", 300, 262),
    ("fanotify_mark", 301, 263),
    ("fchmod", 91, 52),
    ("fchmodat", 268, 53),
    ("fchmodat2", 452, 452),
    ("fchown", 93, 55),
    ("fchownat", 260, 54),
    ("file_setattr", 469, 469),
    ("finit_module", 313, 273),
    ("fremovexattr", 199, 16),
    ("fsconfig", 431, 431),
    ("fsetxattr", 190, 7),
    ("fsmount", 432, 432),
    ("fsopen", 430, 430),
    ("fspick", 433, 433),
    ("futimesat", 261, -1),
    ("get_kernel_syms", 177, -1),
    ("init_module", 175, 105),
    ("io_uring_enter", 426, 426),
    ("io_uring_register", 427, 427),
    ("io_uring_setup", 425, 425),
    ("ioctl", 16, 29),
    ("ioperm", 173, -1),
    ("iopl", 172, -1),
    ("ioprio_set", 251, 30),
    ("kcmp", 312, 272),
    ("kexec_file_load", 320, 294),
    ("kexec_load", 246, 104),
    ("keyctl", 250, 219),
    ("lchown", 94, -1),
    ("listen", 50, 201),
    ("listmount", 458, 458),
    ("lookup_dcookie", 212, 18),
    ("lremovexattr", 198, 15),
    ("lsetxattr", 189, 6),
    ("migrate_pages", 256, 238),
    ("mknod", 133, -1),
    ("mknodat", 259, 33),
    ("modify_ldt", 154, -1),
    ("mount", 165, 40),
    ("mount_setattr", 442, 442),
    ("move_mount", 429, 429),
    ("move_pages", 279, 239),
    ("mq_open", 240, 180),
    ("mq_unlink", 241, 181),
    ("msgctl", 71, 187),
    ("msgget", 68, 186),
    ("msgrcv", 70, 188),
    ("msgsnd", 69, 189),
    ("nfsservctl", 180, 42),
    ("open", 2, -1),
    ("open_by_handle_at", 304, -1),
    ("open_tree", 428, 428),
    ("open_tree_attr", 467, 467),
    ("openat", 257, 56),
    ("openat2", 437, 437),
    ("perf_event_open", 298, 241),
    ("personality", 135, 92),
    ("pidfd_getfd", 438, 438),
    ("pivot_root", 155, 41),
    ("prlimit64", 302, 261),
    ("process_madvise", 440, 440),
    ("process_vm_readv", 310, 270),
    ("process_vm_writev", 311, 271),
    ("ptrace", 101, 117),
    ("query_module", 178, -1),
    ("quotactl", 179, 60),
    ("quotactl_fd", 443, 443),
    ("reboot", 169, 142),
    ("removexattr", 197, 14),
    ("removexattrat", 466, 466),
    ("request_key", 249, 218),
    ("sched_setaffinity", 203, 122),
    ("sched_setattr", 314, 274),
    ("sched_setparam", 142, 118),
    ("sched_setscheduler", 144, 119),
    ("semctl", 66, 191),
    ("semget", 64, 190),
    ("semop", 65, 193),
    ("semtimedop", 220, 192),
    ("sendmmsg", 307, 269),
    ("sendmsg", 46, 211),
    ("sendto", 44, 206),
    ("setdomainname", 171, 162),
    ("sethostname", 170, 161),
    ("setns", 308, 268),
    ("setpriority", 141, 140),
    ("settimeofday", 164, 170),
    ("setxattr", 188, 5),
    ("setxattrat", 463, 463),
    ("shmat", 30, 196),
    ("shmctl", 31, 195),
    ("shmget", 29, 194),
    ("socket", 41, 198),
    ("socketpair", 53, 199),
    ("statmount", 457, 457),
    ("swapoff", 168, 225),
    ("swapon", 167, 224),
    ("syslog", 103, 116),
    ("truncate", 76, 45),
    ("umount2", 166, 39),
    ("unshare", 272, 97),
    ("uselib", 134, -1),
    ("userfaultfd", 323, 282),
    ("ustat", 136, -1),
    ("utime", 132, -1),
    ("utimensat", 280, 88),
    ("utimes", 235, -1),
    ("vhangup", 153, 58),
    ("vserver", 236, -1),
)

ARCHITECTURES = {
    "x86_64": Architecture(
        0xC000003E, {name: number for name, number, _ in NUMBERS}, has_x32=True
    ),
    "aarch64": Architecture(0xC00000B7, {name: number for name, _, number in NUMBERS}),
}
"""By what `os.uname().machine` says."""
