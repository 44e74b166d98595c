"""What is counted: one message on each of the ways that messages take.

Each scene runs a company of its own in virtual time, lets it come to a steady state,
and counts what one message costs. `ledger.py` runs them in a fresh process.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from trio.testing import MockClock

from actors.config.agents import AgentConfig
from actors.config.schedule import HeartbeatConfig
from benchmarks.cost.counting import Ledger, first_come
from benchmarks.cost.office import (
    CONNECTOR,
    PERSON,
    TO_MODEL,
    Chat,
    Furniture,
    Progress,
    open_bare,
    open_office,
)
from benchmarks.cost.web import Client
from connectors.app.accounts import edges_specs
from connectors.models.scripted import (
    ActionSettings,
    CallSettings,
    DelegateSettings,
    RuleSettings,
    Script,
    ScriptSettings,
)
from connectors.tools.calculate import CalculateTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Scene = Callable[[Ledger], Awaitable[None]]

WARM_UP = 12
"""Exchanges before the message that is counted."""

TEAM = ("anna", "ben", "carl")
TOKENS = 20
THINKS = 0.2
"""Seconds until the model's first word."""

ECHO = Script(ScriptSettings(ActionSettings(reply="You said: {0}", delay=THINKS)))


async def direct(ledger: Ledger, exchanges: int = WARM_UP) -> None:
    """Count an answer in a direct chat."""
    progress = Progress(ledger)
    chat = Chat(progress)
    async with open_office(Furniture({"anna": AgentConfig()}, ECHO), chat, progress):
        for number in range(exchanges):
            await chat.write(f"message number {number:06}", "anna")
        with ledger.counting(TO_MODEL):
            await chat.write("message number 999999", "anna")


async def bare(ledger: Ledger) -> None:
    """Count the same answer with only what must be done for it."""
    progress = Progress(ledger)
    chat = Chat(progress)
    async with open_bare(ECHO, chat, progress):
        for number in range(WARM_UP):
            await chat.write(f"message number {number:06}", "anna")
        with ledger.counting(TO_MODEL):
            await chat.write("message number 999999", "anna")


async def http(ledger: Ledger) -> None:
    """Count the same when a program asks over HTTP."""
    progress = Progress(ledger)
    client = Client(progress, random.Random(2))  # noqa: S311  repeatable, no secret
    transport = client.transport
    edges = edges_specs(client.bridge, {CONNECTOR: transport}, None)
    furniture = Furniture({"anna": AgentConfig()}, ECHO, edges=edges)
    async with open_office(furniture, transport, progress):
        for number in range(WARM_UP):
            await client.ask(f"message number {number:06}")
        with ledger.counting(TO_MODEL):
            await client.ask("message number 999999")


async def tool(ledger: Ledger) -> None:
    """Count a turn in which the model calls a tool once."""
    script = Script(
        ScriptSettings(
            ActionSettings(reply="I see."),
            (
                RuleSettings(on_tool="calculate", reply="It is {0}.", pattern=r"\d+$"),
                RuleSettings(
                    pattern="sum",
                    delay=THINKS,
                    tool=(CallSettings("calculate", {"expression": "20 + 22"}),),
                ),
            ),
        )
    )
    await asked(
        ledger,
        Furniture(
            {"anna": AgentConfig(tools=("calculate",))}, script, (CalculateTool(),)
        ),
        "the sum, please",
    )


async def group(ledger: Ledger) -> None:
    """Count a message that three agents hear and one answers."""
    agents = {name: AgentConfig() for name in TEAM}
    await asked(ledger, Furniture(agents, ECHO), "@anna how are you?", tuple(agents))


async def small_talk(ledger: Ledger) -> None:
    """Count a message that three agents hear and nobody answers."""
    agents = {name: AgentConfig() for name in TEAM}
    furniture = Furniture(agents, ECHO)
    await asked(ledger, furniture, "what a day", tuple(agents), answers=0)


async def delegation(ledger: Ledger) -> None:
    """Count a question that one agent hands to another, and both answers."""
    script = Script(
        ScriptSettings(
            ActionSettings(reply="42.", delay=THINKS),
            (
                RuleSettings(
                    agent="anna",
                    pattern="sum",
                    reply="Ben knows.",
                    delay=THINKS,
                    delegate=DelegateSettings("ben", "the sum, please"),
                ),
            ),
        )
    )
    agents = {"anna": AgentConfig(delegates=("ben",)), "ben": AgentConfig()}
    furniture = Furniture(agents, script)
    await asked(ledger, furniture, "@anna the sum?", tuple(agents), answers=2)


async def tokens(ledger: Ledger) -> None:
    """Count a streamed answer of so many words, one every 50 ms."""
    words = " ".join(["word"] * TOKENS)
    answer = ActionSettings(reply=words, delay=THINKS, word_delay=0.05)
    script = Script(ScriptSettings(answer))
    await asked(ledger, Furniture({"anna": AgentConfig()}, script), "tell me a story")


async def heartbeat(ledger: Ledger) -> None:
    """Count a heartbeat of an agent that has nothing to look after."""

    async def nothing(_file: Path) -> str:
        await trio.lowlevel.checkpoint()
        return "# Nothing yet\n"

    beat = HeartbeatConfig(chat=f"{CONNECTOR}/room", sender=PERSON, every=30)
    agent = AgentConfig(persona=Path("anna"), heartbeat=beat)
    progress = Progress(ledger)
    chat = Chat(progress)
    furniture = Furniture({"anna": agent}, ECHO, read_checklist=nothing)
    async with open_office(furniture, chat, progress):
        # The first beats are at 22:30 and 23:00 UTC, the run begins at 22:13:20.
        await trio.sleep(1000.0 + 1800.0 - 1.0)
        with ledger.counting("the beat"):
            await trio.sleep(2.0)


async def asked(
    ledger: Ledger,
    furniture: Furniture,
    text: str,
    present: tuple[str, ...] = (),
    answers: int = 1,
) -> None:
    """Have somebody write the same again and again, and count the last time."""
    progress = Progress(ledger)
    chat = Chat(progress, present)
    async with open_office(furniture, chat, progress):
        for _ in range(WARM_UP):
            await chat.write(text, "" if present else "anna", answers)
        with ledger.counting(TO_MODEL):
            await chat.write(text, "" if present else "anna", answers)


async def conversation_10(ledger: Ledger) -> None:
    """Count an answer after 10 exchanges."""
    await direct(ledger, 10)


async def conversation_100(ledger: Ledger) -> None:
    """Count an answer after 100 exchanges."""
    await direct(ledger, 100)


async def conversation_1000(ledger: Ledger) -> None:
    """Count an answer after 1,000 exchanges."""
    await direct(ledger, 1000)


SCENES: dict[str, Scene] = {
    scene.__name__.replace("_", " "): scene
    for scene in (
        direct,
        bare,
        http,
        tool,
        group,
        small_talk,
        delegation,
        tokens,
        heartbeat,
        conversation_10,
        conversation_100,
        conversation_1000,
    )
}
"""By name, in the order in which they are told."""


def count(name: str) -> Ledger:
    """Run a scene, and give what it counted."""
    ledger = Ledger()

    with first_come():
        trio.run(SCENES[name], ledger, clock=MockClock(autojump_threshold=0))
    return ledger
