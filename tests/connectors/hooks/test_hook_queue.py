"""Proves that one person's messages keep nobody else's from a hook."""

from __future__ import annotations

import msgspec

from actors.hooks.book import AskHook, HookSubject
from connectors.hooks.hook import (
    WAITING_PER_CALL,
    PendingQuestion,
    QuestionQueue,
    owner_of as owner,
)
from runtime.actor.reply import Reply
from runtime.fairness import most_of_one

ABOUT = HookSubject(id="m", correlation_id="m", connector="web", chat="room")


def about(sender_id: str) -> AskHook:
    subject = msgspec.structs.replace(ABOUT, sender_id=sender_id)
    return AskHook(event="message_received", about=subject, text="hello")


async def test_one_person_leaves_room_and_a_turn_to_others() -> None:
    queue = QuestionQueue(1)
    sam, kim = about("sam"), about("kim")
    asked = 0
    while queue.may_add(owner(sam)):
        queue.add(PendingQuestion(sam, Reply(), 1.0))
        asked += 1
    assert asked == most_of_one(1 + WAITING_PER_CALL)
    assert queue.may_add(owner(kim))
    queue.add(PendingQuestion(kim, Reply(), 1.0))
    first = await queue.take()
    queue.done(first)
    assert [first.asked, (await queue.take()).asked] == [sam, kim]
