"""Proves what chats on the page keep, show and hand in."""

from __future__ import annotations

from msgspec import structs

from actors.approvals.permissions import OpenApproval
from actors.messages.deliveries import Reaction
from actors.messages.inbound import Address
from connectors.web.page.platform import PageConfig, PageRoomConfig
from runtime.testing import Reports, open_test_system
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.web.page import (
    ANNA,
    LOBBY,
    form_of,
    open_page,
    reading,
    reply,
    said_in,
)
from tests.support.puppet import Puppet

SAM = PageConfig(port=0, people=("sam", "zoe"))


async def test_a_message_is_handed_in_as_its_chat_says() -> None:
    async with open_page() as bed:
        assert (await bed.say("hello")).status_code == 202
        inbound = await bed.ingress.next()
        assert inbound.address == Address("page", "operator/anna")
        assert (inbound.agent, inbound.is_direct) == ("anna", True)
        assert (inbound.sender_id, inbound.sender_name) == ("operator", "operator")
        await bed.say("hello all", LOBBY)
        inbound = await bed.ingress.next()
        assert inbound.address == Address("page", "#lobby")
        assert (inbound.agent, inbound.is_direct) == ("", False)
        assert inbound.present == ("anna", "ben")


async def test_what_was_said_is_there_after_a_restart() -> None:
    store = MemoryStore()
    async with open_page(store=store) as bed:
        await bed.say("hello")
        await bed.answer(await bed.ingress.next(), "hi there")
    async with open_page(store=store) as bed:
        html = (await bed.client.get(ANNA)).text
        assert said_in(html) == ["operator: hello", "anna: hi there"]


async def test_the_form_works_without_a_script_and_once() -> None:
    async with open_page() as bed:
        form = form_of((await bed.client.get(ANNA)).text) | {"text": "a\r\nb "}
        for _ in range(2):  # the second time by loading the page again
            sent = await bed.client.post(ANNA, data=form)
            assert (sent.status_code, sent.headers["location"]) == (303, ANNA)
        assert [each.text for each in bed.ingress.accepted] == ["a\nb"]
        assert said_in((await bed.client.get(ANNA)).text) == ["operator: a\nb"]


async def test_what_cannot_be_sent_is_said() -> None:
    async with open_page() as bed:
        for text, code in (("   ", "no_text"), ("hi", "bad_key")):
            key = "k" if code == "no_text" else "k" * 65
            response = await bed.say(text, key=key)
            assert (response.status_code, response.json()["code"]) == (400, code)
        bed.ingress.strangers.add("operator")
        assert (await bed.say("hi")).status_code == 403
        assert said_in((await bed.client.get(ANNA)).text) == []


async def test_long_chats_are_shown_page_by_page() -> None:
    async with open_page() as bed:
        form = form_of((await bed.client.get(ANNA)).text)
        for number in range(120):
            asked = form | {"text": f"n{number}", "key": f"k{number}"}
            assert (await bed.client.post(ANNA, data=asked)).status_code == 303
        seen: list[str] = []
        path = ANNA
        while path:
            html = (await bed.client.get(path)).text
            found = said_in(html)
            assert len(found) <= 50
            seen = found + seen
            link = html.partition('class="earlier"><a href="')[2].partition('"')[0]
            path = link
        assert seen == [f"operator: n{number}" for number in range(120)]


async def test_a_very_long_text_is_shown_by_its_beginning_and_whole_by_a_click() -> (
    None
):
    long = "0123456789" * 20_000 + "<b>the end</b>"
    async with open_page(SAM) as bed, bed.browser() as zoe:
        await bed.log_in(zoe, "zoe")
        await bed.say("short")
        assert "/texts/" not in (await bed.client.get(ANNA)).text
        await bed.say(long)
        html = (await bed.client.get(ANNA)).text
        assert len(html) < 60_000
        assert "This is the beginning of 200,014 characters." in html
        path = "/texts/" + html.partition('href="/texts/')[2].partition('"')[0]
        whole = await bed.client.get(path)
        assert whole.text == long
        assert whole.headers["content-type"] == "text/plain; charset=utf-8"
        assert whole.headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert whole.headers["x-content-type-options"] == "nosniff"
        assert (await zoe.get(path)).status_code == 404
        assert (await bed.client.get("/texts/p" + "0" * 24)).status_code == 404
        assert (await bed.client.get("/texts/x")).status_code == 404


async def test_nobody_reads_what_another_person_writes_to_an_agent() -> None:
    async with open_page(SAM) as bed, bed.browser() as zoe:
        await bed.log_in(zoe, "zoe")
        await bed.say("a secret of Sam's")
        await bed.say("for all", LOBBY)
        assert said_in((await zoe.get(ANNA)).text) == []
        assert said_in((await zoe.get(LOBBY)).text) == ["sam: for all"]
        inbound = await bed.ingress.next()
        assert inbound.address.chat == "sam/anna"


async def test_a_room_has_those_in_it_whom_the_settings_name() -> None:
    rooms = {"desk": PageRoomConfig(title="The desk", agents=("b*",))}
    async with open_page(PageConfig(port=0, rooms=rooms)) as bed:
        html = (await bed.client.get("/chat/room/desk")).text
        assert "The desk" in html
        assert "with ben" in html
        assert (await bed.client.get(LOBBY)).status_code == 404
        await bed.say("hi", "/chat/room/desk")
        assert (await bed.ingress.next()).present == ("ben",)


async def test_a_sign_is_shown_at_its_message_and_after_a_restart() -> None:
    store = MemoryStore()
    async with open_page(store=store) as bed:
        await bed.say("hello")
        inbound = await bed.ingress.next()
        sign = Reaction(
            correlation_id="m",
            address=inbound.address,
            agent="anna",
            message=inbound.platform_id,
            sign="👀",
        )
        await bed.transport.presence.react(sign)
    async with open_page(store=store) as bed:
        assert '<span title="anna">👀</span>' in (await bed.client.get(ANNA)).text


async def test_old_messages_are_forgotten_as_the_settings_say() -> None:
    config = PageConfig(port=0, keep_messages=100)
    async with open_page(config) as bed:
        form = form_of((await bed.client.get(ANNA)).text)
        for number in range(130):
            asked = form | {"text": f"n{number}", "key": f"k{number}"}
            await bed.client.post(ANNA, data=asked)
        assert await bed.transport.tidy() == 30
        kept = await bed.store.entries("page_message")
        assert len(kept) == len(await bed.store.entries("page_message_place")) == 100
        assert await bed.transport.tidy() == 0


async def test_an_agent_is_seen_under_its_display_name() -> None:
    async with open_page(shown={"anna": "Eliza O. Smith"}) as bed:
        await bed.say("hello")
        await bed.answer(await bed.ingress.next(), "hi there")
        html = (await bed.client.get(ANNA)).text
        assert said_in(html) == ["operator: hello", "Eliza O. Smith: hi there"]
        assert "<h1>Eliza O. Smith</h1>" in html
        entry = html.partition('href="/chat/with/anna"')[2].partition("</a>")[0]
        assert 'aria-current="page"' in entry
        assert ">Eliza O. Smith<" in entry
        room = (await bed.client.get(LOBBY)).text
        assert "with Eliza O. Smith, ben" in room
        assert "@Eliza O. Smith calls an agent" in room


async def test_words_are_found_in_a_chat_with_the_way_to_where_they_stand() -> None:
    async with open_page() as bed:
        form = form_of((await bed.client.get(ANNA)).text)
        for number in range(60):
            asked = form | {"text": f"n{number} <b>", "key": f"k{number}"}
            await bed.client.post(ANNA, data=asked)
        html = (await bed.client.get(f"{ANNA}?find=N7 %3CB%3E")).text
        assert html.count("<article") == 1
        assert "<b>" not in html
        path = html.partition('<a href="/chat/with/anna?at=')[2].partition('"')[0]
        there = (await bed.client.get(f"{ANNA}?at={path}")).text
        assert said_in(there)[-1] == "operator: n7 <b>"
        assert "Back to the newest" in there
        nothing = (await bed.client.get(f"{ANNA}?find=nobody said this")).text
        assert "No message here has these words." in nothing


async def test_a_question_for_leave_has_buttons_until_it_is_decided() -> None:
    async with open_page() as bed:
        await bed.say("write it")
        inbound = await bed.ingress.next()
        asked = structs.replace(reply(inbound, "May I?"), is_aside=True)
        board = bed.transport._parts.backstage.services.board
        approval = OpenApproval(
            id="0V",
            turn_id="t",
            key="1",
            agent="anna",
            asker="page/operator",
            tool="write_file",
            effect="write",
            address=inbound.address,
        )
        async with open_test_system(Reports()) as system:
            board.put(approval, system.spawn(Puppet()), asked.id)
            await bed.transport.deliver(asked)
            html = (await bed.client.get(ANNA)).text
            assert 'data-say="/approve 0V"' in html
            assert 'data-say="/deny 0V"' in html
            board.take(approval)
            assert "/approve 0V" not in (await bed.client.get(ANNA)).text


async def test_a_tab_learns_of_answers_in_the_chats_of_its_person_alone() -> None:
    async with (
        open_page(SAM) as bed,
        bed.browser() as zoe,
        reading(bed.client, LOBBY) as stream,
    ):
        await bed.log_in(zoe, "zoe")
        await bed.say("hers", client=zoe)
        await bed.answer(await bed.ingress.next(), "for zoe alone")
        await bed.say("mine")
        await bed.answer(await bed.ingress.next(), "for sam")
        told = await stream.next("elsewhere")
        assert '"path":"/chat/with/anna"' in told.data
        html = (await bed.client.get(LOBBY)).text
        changed = html.partition('href="/chat/with/anna" data-changed="')[2]
        assert changed.partition('"')[0] in told.data
