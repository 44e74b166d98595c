"""Commands about what is remembered: `/memory` and `/forget`.

In a direct chat they are about the person, by all accounts of theirs; in a group
about the chat, since all of it read the answer, or about what the person said there,
where each has a conversation of their own.
"""

from __future__ import annotations

from actors.commands.context import CommandReply, CommandRequest
from actors.journal.parts import in_one_part
from actors.memory import scopes as scope_names
from actors.memory.forgetting import marked
from actors.memory.messages import FactKind
from actors.messages.keys import chat_partition
from runtime.store.facts import FactListing, ForgetFacts, StoredFact
from runtime.store.rows import Commit

MOST_FACTS = 50
"""Facts that are shown; of more, the number is told."""

SHOWN: tuple[FactKind, ...] = ("fact", "state", "lesson", "summary")

# Chosen: of a thousand facts, two have the same end once in two million cases.
SHORT = 6
"""Letters of an id that people see and type."""


async def memory(asked: CommandRequest) -> CommandReply:
    """Show what is remembered, or forget one thing of it."""
    verb, _, named = asked.rest.partition(" ")
    if verb == "forget" and named.strip():
        return await forget_facts(asked, tuple(named.split()))
    return await shown(asked)


async def forget(asked: CommandRequest) -> CommandReply:
    """End the conversation; or forget all facts, or some."""
    if not asked.rest:
        text = asked.say("This conversation is over; the next words begin a new one.")
        return CommandReply(text, reset="forget")
    if asked.rest == "facts":
        return await forget_facts(asked, ())
    return await forget_facts(asked, tuple(asked.rest.split()))


async def shown(asked: CommandRequest) -> CommandReply:
    """List what is remembered, the newest first."""
    say, found = asked.say, await known(asked)
    if not found:
        return CommandReply(say("Nothing is remembered."))
    lines = [say("This is remembered; /memory forget ID forgets one of these:")]
    lines += [f"{short(each.id)}: {worded(each)}" for each in found[:MOST_FACTS]]
    if len(found) > MOST_FACTS:
        lines.append(say("… and {count} more").format(count=len(found) - MOST_FACTS))
    return CommandReply("\n".join(lines))


async def forget_facts(asked: CommandRequest, ids: tuple[str, ...]) -> CommandReply:
    """Forget facts.

    Args:
        ids: which ones, as `short` gives them; none: all.
    """
    say, services = asked.say, asked.services
    if not (asked.is_owner or all(map(scope_names.is_persons, scopes(asked)))):
        return CommandReply(
            say("In a group, only those who run this company may do that.")
        )
    named = {each.lower() for each in ids}
    found = await known(asked)
    gone = [each.id for each in found if not ids or short(each.id) in named]
    nothing = CommandReply(say("There was nothing to forget."))
    if ids and not gone:
        return nothing
    # Without ids also what is not listed: rewards, and what the disk has beyond.
    change = ForgetFacts(
        agent=asked.persona.name,
        scopes=scopes(asked),
        ids=tuple(gone) if ids else (),
    )
    address, agent = asked.inbound.address, asked.persona.name
    part = chat_partition(address.connector, address.chat)
    marks = marked(agent, change.scopes, asked.inbound.id)
    commit = Commit(at=services.clock.wall(), facts=(change,), entries=marks)
    cause = f"{asked.inbound.id}/forget"
    await services.store.commit(in_one_part(commit, part, cause))
    # Also with nothing there yet: what was said shall not be found worth keeping.
    if not gone:
        return nothing
    return CommandReply(say("Forgotten: {count}").format(count=len(gone)))


async def known(asked: CommandRequest) -> tuple[StoredFact, ...]:
    """Read what is remembered where this was asked."""
    services = asked.services
    listing = FactListing(
        agent=asked.persona.name,
        scopes=scopes(asked),
        kinds=SHOWN,
        now=services.clock.wall(),
    )
    return await services.store.facts.listed(listing)


def short(fact_id: str) -> str:
    """Give the end of a fact's id, which people can type."""
    return fact_id[-SHORT:].lower()


def worded(fact: StoredFact) -> str:
    """Give a fact in one line."""
    text = " ".join(fact.text.split())
    return f"{fact.key} = {text}" if fact.kind == "state" else text


def scopes(asked: CommandRequest) -> tuple[str, ...]:
    """Name the scopes whose facts may be shown where this was asked."""
    address = asked.inbound.address
    if asked.inbound.is_direct:
        return asked.person.scopes
    services = asked.services
    member = scope_names.member_of(asked.inbound, services.sessions.session_scope)
    return (scope_names.chat(address, member),)
