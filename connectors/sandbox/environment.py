"""The few variables that a confined program is given.

Pure. By a list of what is wanted, never of what is not: a secret has any name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PASSED_ON = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TERM", "TZ")
"""What is taken from Callboard's own."""

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

NEVER = frozenset({"CLAUDECODE"})
"""Not even if the caller says so: it would tell a model's program that it runs inside
another one of its kind (F201)."""


def scrubbed(
    own: Mapping[str, str],
    given: Mapping[str, str],
    home: str,
    temporary: str,
) -> dict[str, str]:
    """Choose a program's variables.

    Args:
        own: Callboard's.
        given: by the caller; they win.
        home: the folder that it works in.
        temporary: its own folder for temporary files.
    """
    chosen = {name: own[name] for name in PASSED_ON if name in own}
    chosen |= {
        "PATH": PATH,
        "HOME": home,
        "TMPDIR": temporary,
        # The C library then names hosts over TCP, as UDP is closed.
        "RES_OPTIONS": "use-vc",
    }
    chosen |= given
    return {name: value for name, value in chosen.items() if name not in NEVER}
