"""Clients see agents by their display names, and the ids that follow from them."""

from __future__ import annotations

import trio

from connectors.web.eliza.messages import to_uuid
from tests.fakes.web.eliza import ZOE, open_web

ELIZA = "b850bc30-45f8-0041-a00a-83df46d8555d"
"""The id of "Eliza" everywhere, by `stringToUuid` of @elizaos/core."""

SHOWN = {"anna": "Eliza"}


async def test_clients_see_the_display_name_under_its_well_known_id() -> None:
    async with open_web(shown=SHOWN) as bed:
        listed = (await bed.ask("GET", "/api/agents"))["agents"]
        assert [(x["id"], x["name"], x["characterName"]) for x in listed] == [
            (ELIZA, "Eliza", "Eliza"),
            (to_uuid("ben"), "ben", "ben"),
        ]
        for name in (ELIZA, "Eliza", "anna", to_uuid("anna")):
            assert (await bed.ask("GET", f"/api/agents/{name}"))["id"] == ELIZA


async def test_an_answer_is_said_under_the_display_name() -> None:
    async with open_web(shown=SHOWN) as bed, trio.open_nursery() as nursery:
        nursery.start_soon(bed.answer_all)
        channel = await bed.channel(ZOE, ELIZA)
        rooms = await bed.ask("GET", "/api/memory/anna/rooms")
        assert [each["agentId"] for each in rooms["rooms"]] == [ELIZA]
        await bed.say(channel, "hi", mode="sync")
        (answer, _) = await bed.messages(channel)
        assert answer["authorId"] == ELIZA
        assert answer["metadata"]["agent_name"] == "Eliza"
        nursery.cancel_scope.cancel()


async def test_ids_of_before_it_had_a_display_name_still_reach_it() -> None:
    async with open_web(shown=SHOWN) as bed:
        channel = await bed.channel(ZOE, to_uuid("anna"))
        await bed.say(channel, "hi")
        assert (await bed.ingress.next_or_wait()).agent == "anna"
