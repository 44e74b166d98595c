"""Asks everything that settings speak of at the same time, each with a deadline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec
import trio

from connectors.commands.doctor_checks import Finding
from connectors.office.safe_text import make_safe

if TYPE_CHECKING:
    from collections.abc import Iterable

TIMEOUT = 10.0
"""Seconds for each; a provider that takes longer for a list of models is not well."""

MOST_AT_ONCE = 16


class Probe(msgspec.Struct, frozen=True):
    """One thing to ask."""

    about: str
    """First word of its line: `model`, `connector`, ..."""

    name: str
    """As settings call it: `accounts.main`."""

    ask: Callable[[], Awaitable[list[Finding]]]
    """Raises nothing that is expected to happen."""


async def ask_all(probes: Iterable[Probe], seconds: float = TIMEOUT) -> list[Finding]:
    """Ask all of them; give what was found in their order.

    Args:
        probes: what to ask.
        seconds: that each may take.
    """
    asked = list(probes)
    found: list[list[Finding]] = [[] for _ in asked]
    limit = trio.CapacityLimiter(MOST_AT_ONCE)

    async def ask(number: int, probe: Probe) -> None:
        async with limit:
            with trio.move_on_after(seconds) as scope:
                found[number] = await probe.ask()
        if scope.cancelled_caught:
            text = f"{probe.name}: no answer within {seconds:g} s"
            cure = "check the network and the address, or give it longer: --timeout"
            found[number] = [Finding("wrong", probe.about, text, cure)]

    async with trio.open_nursery() as nursery:
        for number, probe in enumerate(asked):
            nursery.start_soon(ask, number, probe)
    # What others said must not move a terminal's cursor.
    return [
        msgspec.structs.replace(
            each, text=make_safe(each.text), cure=make_safe(each.cure)
        )
        for findings in found
        for each in findings
    ]
