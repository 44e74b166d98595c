"""The command `/pair`: owners let strangers in, or refuse them."""

from __future__ import annotations

from actors import names
from actors.commands.context import CommandReply, CommandRequest, Unanswered
from actors.people.guests import (
    DecideRequest,
    GuestBook,
    ListGuests,
    RequestDecided,
    RevokeGuest,
)
from actors.rules.text.codes import shown

MOST_SHOWN = 20

PRIVATE = "Please write this to me in a direct chat: it names people."
USAGE = "Say /pair, /pair approve CODE, /pair deny CODE or /pair revoke ACCOUNT."
NOT_DONE = {
    "unknown": "Nobody waits under {what}: it may have been too long ago. See /pair.",
    "too_many": "Too many wrong codes. Please wait a quarter of an hour.",
    "full": "As many people as may be were let in; list them in the settings instead.",
}

DONE = {
    "approve": "{account} may write from now on, and is told so. /pair revoke ends it.",
    "deny": "{account} is not let in, and gets no other code for a day.",
    "revoke": "{account} may write no more; what was taken in before is answered.",
}


async def pair(asked: CommandRequest) -> CommandReply:
    """Show who asks to be let in, or decide about somebody."""
    word, _, rest = asked.rest.partition(" ")
    what, by = rest.strip(), asked.account
    if word in ("", "list"):
        return await listed(asked)
    if word == "approve" and what:
        wanted = DecideRequest(what, by, is_approved=True)
        return decided(asked, what, await asked.ask(names.PAIRING, wanted))
    if word == "deny" and what:
        wanted = DecideRequest(what, by, is_approved=False)
        return decided(asked, what, await asked.ask(names.PAIRING, wanted))
    if word == "revoke" and what:
        message = RevokeGuest(what, by)
        return decided(asked, what, await asked.ask(names.PAIRING, message))
    return CommandReply(asked.say(USAGE))


async def listed(asked: CommandRequest) -> CommandReply:
    """Show who asks, and who was let in."""
    say = asked.say
    if not asked.inbound.is_direct:
        return CommandReply(say(PRIVATE))
    book = await asked.ask(names.PAIRING, ListGuests())
    if not isinstance(book, GuestBook):
        raise Unanswered
    lines: list[str] = []
    for each in book.requests[:MOST_SHOWN]:
        text = say(
            "{code}: {account}, who calls themselves {name} ({minutes} min left)"
        )
        minutes = max(1, round((each.until - book.now) / 60))
        lines.append(
            text.format(
                code=shown(each.code),
                account=each.account,
                name=each.name or "?",
                minutes=minutes,
            )
        )
    if not lines:
        lines.append(say("Nobody asks to be let in."))
    else:
        lines.append(say("Names can be made up: compare the code. /pair approve CODE"))
    if book.guests:
        text = say("Let in so far: {count}, among them {accounts}")
        accounts = ", ".join(each.account for each in book.guests[:MOST_SHOWN])
        lines.append(text.format(count=len(book.guests), accounts=accounts))
    return CommandReply("\n".join(lines))


def decided(asked: CommandRequest, what: str, found: object) -> CommandReply:
    """Say what came of an owner's word."""
    if not isinstance(found, RequestDecided):
        raise Unanswered
    if found.outcome != "done":
        return CommandReply(asked.say(NOT_DONE[found.outcome]).format(what=what))
    return CommandReply(
        asked.say(DONE[asked.rest.split()[0]]).format(account=found.account)
    )
