"""What `callboard doctor` says of bots on Discord."""

from __future__ import annotations

import discord

from connectors.admin.probes import ask_all
from connectors.chat.discord.doctor import probes
from tests.support.chat.discord_bed import DiscordBed, open_bed


async def lines(bed: DiscordBed) -> list[tuple[str, str, str]]:
    config = bed.transport._shared.config
    found = await ask_all(probes("discord", config))
    return [(each.state, each.text, each.cure) for each in found]


async def test_a_bot_that_is_well_is_told_so() -> None:
    async with open_bed("anna") as bed:
        found = await lines(bed)
        assert {state for state, _, _ in found} == {"ok"}
        said = "\n".join(text for _, text, _ in found)
        assert "connectors.discord.accounts.anna: the token is that of anna" in said
        assert "may read messages" in said
        assert "is in 1 server" in said
        assert "1,000 times today" in said


async def test_a_token_that_is_not_taken_is_wrong() -> None:
    async with open_bed("anna") as bed:
        bed.world.bots.clear()
        [(state, text, cure)] = await lines(bed)
        assert (state, "is not taken" in text) == ("wrong", True)
        assert "Reset Token" in cure


async def test_an_intent_that_is_switched_off_is_wrong() -> None:
    async with open_bed("anna") as bed:
        bed.world.allowed[bed.bots["anna"]] = False
        found = [each for each in await lines(bed) if each[0] != "ok"]
        [(state, text, cure)] = found
        assert (state, "Message Content Intent" in text) == ("wrong", True)
        assert f"{bed.bots['anna']}/bot" in cure


async def test_a_bot_in_no_server_is_told_how_to_invite_it() -> None:
    async with open_bed("anna") as bed:
        bed.server.guilds.clear()
        found = [each for each in await lines(bed) if each[0] != "ok"]
        [(state, _, cure)] = found
        assert state == "warning"
        assert f"client_id={bed.bots['anna']}" in cure
        asked = discord.Permissions(int(cure.rpartition("permissions=")[2]))
        assert asked == discord.Permissions(
            view_channel=True,
            send_messages=True,
            send_messages_in_threads=True,
            attach_files=True,
            read_message_history=True,
            add_reactions=True,
        )


async def test_discord_that_is_away_is_a_warning() -> None:
    async with open_bed("anna") as bed:
        await bed.bridge.call(bed.server.stop)
        [(state, text, _)] = await lines(bed)
        assert (state, "is not reached" in text) == ("warning", True)
