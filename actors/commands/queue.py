"""The command `/queue`: which messages wait, and what is done with them."""

from __future__ import annotations

from typing import Literal

from actors.commands.context import CommandReply, CommandRequest
from actors.commands.status import POLICIES, bounded, open_here, shortened
from actors.messages.busy_policies import POLICY_RULES
from actors.messages.commands import near
from actors.rules.text.durations import spoken

DEFAULT: Literal["default"] = "default"


async def queue(asked: CommandRequest) -> CommandReply:
    """Show what is done with messages that come meanwhile, or choose it."""
    if not asked.rest:
        return CommandReply("\n".join([*policy(asked), *await waiting(asked)]))
    return choose(asked, asked.rest.casefold())


def choose(asked: CommandRequest, wanted: str) -> CommandReply:
    """Have messages of this conversation treated otherwise from now on."""
    say, account = asked.say, asked.inbound.address.connector
    if not asked.services.account(account).abilities.shows_asides:
        text = "Here each request waits for its own answer; nothing else can be chosen."
        return CommandReply(say(text))
    if wanted == DEFAULT:
        usual = asked.standing.usual
        text = say("As the settings say again: {policy}.").format(policy=usual)
        return CommandReply(f"{text} {say(POLICIES[usual])}", policy=DEFAULT)
    for each in POLICY_RULES:
        if each == wanted:
            text = say("From now on in this conversation: {policy}.")
            line = f"{text.format(policy=each)} {say(POLICIES[each])}"
            return CommandReply(
                f"{line} {say('/queue default goes back.')}", policy=each
            )
    known = (*POLICY_RULES, DEFAULT)
    text = say("There is no '{word}' to choose: {names}.")
    lines = [text.format(word=wanted[:64], names=", ".join(known))]
    if close := near(wanted, known):
        lines.append(say("Did you mean {names}?").format(names=", ".join(close)))
    return CommandReply(" ".join(lines))


def policy(asked: CommandRequest) -> list[str]:
    """Say what is done with messages that come meanwhile, and by whose word."""
    say, standing = asked.say, asked.standing
    if standing.chosen in {"", DEFAULT}:
        text = say("By the settings: {policy}.")
        hint = say("/queue NAME chooses another: {names}.")
        hint = hint.format(
            names=", ".join(x for x in POLICY_RULES if x != standing.policy)
        )
    else:
        text = say("Chosen here: {policy}.")
        hint = say("/queue default goes back.")
    now = text.format(policy=standing.policy)
    return [f"{now} {say(POLICIES[standing.policy])} {hint}"]


async def waiting(asked: CommandRequest) -> list[str]:
    """Show which messages of this chat wait; to owners, how many do in all."""
    say = asked.say
    now = asked.services.clock.wall()
    lines: list[str] = []
    for row, each in await open_here(asked):
        if each.id == asked.inbound.id:
            continue
        span = spoken(max(0.0, now - row.at), say)
        text = say("{sender}, {span} ago: {text}")
        if row.state == "running":
            text = say("{sender}, {span} ago, being answered: {text}")
        elif row.due_at > now:
            text = say("{sender}, {span} ago, to be tried again: {text}")
        shown = shortened(each.text)
        name = each.sender_name or each.sender_id
        lines.append(text.format(sender=name, span=span, text=shown))
    lines = bounded(asked, lines) or [say("Nothing waits in this chat.")]
    return [*lines, await everywhere(asked)] if asked.is_owner else lines


async def everywhere(asked: CommandRequest) -> str:
    """Say how many messages wait in all chats, less this very command."""
    counts = (await asked.services.store.counts()).inbox
    open_ = max(0, counts.get("accepted", 0) + counts.get("running", 0) - 1)
    total = asked.say("In all chats: {count} open, {dead} given up.")
    return total.format(count=open_, dead=counts.get("dead", 0))
