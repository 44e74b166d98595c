"""The runtime's commands are offered by Discord, and answered in their place."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import trio
import trio.testing

from actors.commands.registry import COMMANDS
from actors.errors import OverloadedError
from tests.fakes.discord.world import CHANNEL, ZOE
from tests.support.chat.discord_bed import DiscordBed, delivery, open_bed

MODEL = {"name": "model", "options": [{"type": 3, "name": "text", "value": "big"}]}
HELP = {"name": "help"}


async def choose(bed: DiscordBed, data: Mapping[str, object], channel: str) -> str:
    act = partial(bed.server.choose, bed.bots["anna"], channel, ZOE, data)
    return await bed.bridge.call(act)


async def test_all_commands_are_made_known_once() -> None:
    async with open_bed("anna") as bed:
        mine = bed.bots["anna"]
        for _ in range(2):
            async with bed.listening():
                await bed.wait(lambda: mine in bed.world.commands)
                await bed.wait(lambda: asked(bed, "GET") > 0)
                await trio.testing.wait_all_tasks_blocked()
            bed.make()
        assert [each["name"] for each in bed.world.commands[mine]] == [*COMMANDS]
        assert asked(bed, "PUT") == 1


def asked(bed: DiscordBed, method: str) -> int:
    return sum(
        each == method and path.endswith("/commands") for each, path in bed.server.asked
    )


async def test_commands_can_be_left_out() -> None:
    async with open_bed("anna", slash_commands=False) as bed, bed.listening():
        assert asked(bed, "GET") == 0


async def test_a_command_is_heard_by_its_agent_and_answered_in_its_place() -> None:
    async with open_bed() as bed, bed.listening():
        token = await choose(bed, MODEL, CHANNEL)
        got = await bed.ingress.next()
        assert (got.text, got.agent, got.is_direct) == ("/model big", "anna", False)
        await bed.wait(lambda: bed.world.answers.get(token, {}).get("type") == 5)
        said = delivery("It is big now.", reply_to=got.platform_id)
        receipt = await bed.transport.deliver(said)
        assert bed.world.answers[token]["data"]["content"] == "It is big now."
        assert await bed.transport.deliver(said) == receipt
        await bed.transport.deliver(delivery("More.", reply_to=got.platform_id))
        assert bed.said() == ["anna: More."]


async def test_a_command_in_a_direct_chat_is_direct() -> None:
    async with open_bed("anna") as bed, bed.listening():
        chat = bed.world.direct(bed.bots["anna"])
        await choose(bed, HELP, chat)
        got = await bed.ingress.next()
        assert (got.text, got.agent, got.is_direct) == ("/help", "anna", True)


async def test_a_command_without_an_answer_leaves_nothing_behind() -> None:
    async with open_bed("anna") as bed, bed.listening():
        token = await choose(bed, HELP, CHANNEL)
        got = await bed.ingress.next()
        await bed.wait(lambda: token in bed.world.answers)
        await bed.transport.settle(got, "cancelled")
        assert token not in bed.world.answers


async def test_a_command_that_was_not_stored_is_refused_to_them_alone() -> None:
    async with open_bed("anna") as bed, bed.listening():
        bed.ingress.error = OverloadedError("too much")
        token = await choose(bed, HELP, CHANNEL)
        await bed.wait(lambda: token in bed.world.answers)
        answer = bed.world.answers[token]
        assert answer["data"]["flags"] == 64
        assert "too much" in answer["data"]["content"]
        assert bed.said() == []
        labels = {"account": "anna", "connector": "discord"}
        assert bed.counted("events_total", outcome="command_refused", **labels) == 1
        assert bed.counted("events_total", outcome="command", **labels) == 0


async def test_a_stranger_s_command_is_refused() -> None:
    async with open_bed("anna") as bed, bed.listening():
        bed.ingress.strangers.add(ZOE)
        token = await choose(bed, HELP, CHANNEL)
        await bed.wait(lambda: token in bed.world.answers)
        assert "may not" in bed.world.answers[token]["data"]["content"]
