"""Where models run that are programs; imported also where there are none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from connectors.sandbox.plan import LONG_RUNNING, Confinement

if TYPE_CHECKING:
    from pathlib import Path

    from actors.messages.inbound import ModelRequest
    from connectors.config.models import CliModelConfig
    from connectors.sandbox.runner import Sandbox

# Chosen: one more start of the program after each.
GOES_ON_AFTER = (2.0, 4.0, 8.0, 16.0, 32.0)


@dataclass(frozen=True)
class CallAids:
    """What a program is given for one answer besides its prompt."""

    servers: Path | None = None
    """A file that names servers of tools, for the program to start."""

    readable: tuple[Path, ...] = ()
    """Folders that it may read: those of the agent's skills."""


Prepare = Callable[["ModelRequest", "Path"], "AbstractAsyncContextManager[CallAids]"]
"""Makes a conversation's folder ready for one answer, and tidies up after it; raises
`KernelError`."""


def leave_as_it_is(_: ModelRequest, __: Path) -> AbstractAsyncContextManager[CallAids]:
    """Prepare nothing."""
    return nullcontext(CallAids())


@dataclass(frozen=True)
class ProgramPlace:
    """Where programs run."""

    sandbox: Sandbox
    folder: Path
    """Where their conversations' folders are: `<agent>/<conversation>`."""

    prepare: Prepare = leave_as_it_is
    tidy: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
    """Removes what nobody uses any more; called before each answer."""

    pauses: tuple[float, ...] = GOES_ON_AFTER
    """Seconds before each further start for one answer."""


def confinement_of(
    config: CliModelConfig, home: Path, readable: tuple[Path, ...] = ()
) -> Confinement:
    """Say what a program that answers may do.

    Args:
        config: its settings.
        home: its current folder, which it may change.
        readable: what it may read besides what the settings say.
    """
    return Confinement(
        readable=(*config.readable, *readable),
        writable=(home, *config.writable),
        network="tcp",
        limits=LONG_RUNNING,
    )
