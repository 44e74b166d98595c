"""The command `/queue`: which messages wait, and what is done with them (B1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from actors.desk_question import Told
from actors.desk_reports import POLICIES, bounded, open_here, shortened
from actors.rules.busy_policies import MANNERS
from actors.rules.commands import near
from actors.rules.spans import spoken

if TYPE_CHECKING:
    from actors.desk_question import Question

DEFAULT: Literal["default"] = "default"


async def queue(asked: Question) -> Told:
    """Show what is done with messages that come meanwhile, or choose it."""
    if not asked.rest:
        return Told("\n".join([*policy(asked), *await waiting(asked)]))
    return choose(asked, asked.rest.casefold())


def choose(asked: Question, wanted: str) -> Told:
    """Have messages of this conversation treated otherwise from now on."""
    say, account = asked.say, asked.inbound.address.connector
    if not asked.services.account(account).abilities.shows_asides:
        text = "Here each request waits for its own answer; nothing else can be chosen."
        return Told(say(text))
    if wanted == DEFAULT:
        usual = asked.standing.usual
        text = say("As the settings say again: {policy}.").format(policy=usual)
        return Told(f"{text} {say(POLICIES[usual])}", policy=DEFAULT)
    for each in MANNERS:
        if each == wanted:
            text = say("From now on in this conversation: {policy}.")
            line = f"{text.format(policy=each)} {say(POLICIES[each])}"
            return Told(f"{line} {say('/queue default goes back.')}", policy=each)
    known = (*MANNERS, DEFAULT)
    text = say("There is no '{word}' to choose: {names}.")
    lines = [text.format(word=wanted[:64], names=", ".join(known))]
    if close := near(wanted, known):
        lines.append(say("Did you mean {names}?").format(names=", ".join(close)))
    return Told(" ".join(lines))


def policy(asked: Question) -> list[str]:
    """Say what is done with messages that come meanwhile, and by whose word."""
    say, standing = asked.say, asked.standing
    if standing.chosen in {"", DEFAULT}:
        text = say("By the settings: {policy}.")
        hint = say("/queue NAME chooses another: {names}.")
        hint = hint.format(names=", ".join(x for x in MANNERS if x != standing.policy))
    else:
        text = say("Chosen here: {policy}.")
        hint = say("/queue default goes back.")
    now = text.format(policy=standing.policy)
    return [f"{now} {say(POLICIES[standing.policy])} {hint}"]


async def waiting(asked: Question) -> list[str]:
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


async def everywhere(asked: Question) -> str:
    """Say how many messages wait in all chats, less this very command."""
    counts = (await asked.services.store.counts()).inbox
    open_ = max(0, counts.get("accepted", 0) + counts.get("running", 0) - 1)
    total = asked.say("In all chats: {count} open, {dead} given up.")
    return total.format(count=open_, dead=counts.get("dead", 0))
