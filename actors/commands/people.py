"""Commands about people: one's own account, links and language; `/pair` for owners."""

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
from actors.people.identity import Person, connector_of
from actors.people.lookup import (
    ChangePerson,
    LinkAccounts,
    LinkCode,
    Linked,
    ShowCode,
    TypeCode,
    UnlinkAccount,
)
from actors.rules.text import languages
from actors.rules.text.codes import shown
from actors.rules.text.translations import Translate

NOT_LINKED = {
    "unknown": "This code is not known, or no longer. Ask for a new one with /link.",
    "own": "Type this code on your other account, not here.",
    "too_many": "Too many wrong codes. Please wait a quarter of an hour.",
    "nothing": "There was nothing to change.",
}
PRIVATE = "Please write this to me in a direct chat: a code is for your eyes only."


async def start(asked: CommandRequest) -> CommandReply:
    """Greet somebody."""
    say, persona = asked.say, asked.persona
    text = say("Hello {name}, I am {agent}. Just write to me; /help lists commands.")
    about = f"\n{persona.config.description}" if persona.config.description else ""
    name = asked.inbound.sender_name or asked.person.name
    return CommandReply(text.format(name=name, agent=persona.shown) + about)


async def language(asked: CommandRequest) -> CommandReply:
    """Show or choose the language somebody is spoken to in."""
    say, word, voices = asked.say, asked.rest, asked.services.voices
    spoken = voices.languages
    if not word:
        code = asked.person.language or asked.inbound.language
        known = ", ".join(f"{each} ({named(each)})" for each in spoken)
        text = say("Your language: {language}. /language CODE chooses another: {known}")
        return CommandReply(text.format(language=named(code) or "?", known=known))
    code, known = languages.code_of(word), ", ".join(spoken)
    if not code and word != "auto":
        text = say("I do not know the language '{word}'; known: {known}")
        return CommandReply(text.format(word=word, known=known))
    await asked.ask(names.PEOPLE, ChangePerson(asked.account, language=code))
    if not code:
        return CommandReply(say("I will find out again which language you write in."))
    say = voices.speak(code, asked.inbound.language)
    if code in spoken:
        text = say("From now on I speak {language} with you.")
        return CommandReply(text.format(language=named(code)))
    text = say(
        "From now on agents are to speak {language} with you. My own words, such as"
        " those of /help, are not translated into it; known: {known}"
    )
    return CommandReply(text.format(language=named(code), known=known))


def named(code: str) -> str:
    """Give a language's own name; of one not known, its code."""
    return languages.NAMES.get(code, code)


async def whoami(asked: CommandRequest) -> CommandReply:
    """Show as whom somebody is known."""
    say, person = asked.say, asked.person
    lines = [say("You are {account} here.").format(account=asked.account)]
    if not asked.inbound.is_direct:
        return CommandReply(lines[0])  # nobody else's business
    if person.aliases:
        accounts = ", ".join(person.accounts)
        lines.append(say("Your accounts: {accounts}").format(accounts=accounts))
    if person.model:
        lines.append(say("Your model: {model}").format(model=person.model))
    if person.language:
        own = named(person.language)
        lines.append(say("Your language: {language}").format(language=own))
    if asked.is_owner:
        lines.append(say("You run this company."))
    return CommandReply("\n".join([*lines, *proposed(person, say)]))


def proposed(person: Person, say: Translate) -> list[str]:
    """Say where somebody of a like name writes; never who."""
    where = sorted({connector_of(each) for each in person.proposals})
    if not where:
        return []
    text = say(
        "Somebody of a name like yours writes on {where}. If that is you, /link there"
        " shows a code to type here."
    )
    return [text.format(where=", ".join(where))]


async def link(asked: CommandRequest) -> CommandReply:
    """Show a code, take one, or do as an owner says."""
    say, words = asked.say, asked.rest.split()
    if len(words) == 2 and all("/" in word for word in words):
        if not asked.is_owner:
            return CommandReply(say("Only an owner links the accounts of others."))
        wanted = LinkAccounts(words[0], words[1], asked.account)
        return linked(asked, await asked.ask(names.PEOPLE, wanted))
    if not asked.inbound.is_direct:
        return CommandReply(say(PRIVATE))
    if words:
        typed = TypeCode(asked.account, asked.rest)
        return linked(asked, await asked.ask(names.PEOPLE, typed))
    made = await asked.ask(names.PEOPLE, ShowCode(asked.account))
    if not isinstance(made, LinkCode):
        raise Unanswered
    text = say(
        "Type this on your other account, in a direct chat, within {minutes} minutes:"
        " /link {code}\nWhoever types it is taken for you, so show it to nobody."
    )
    minutes = round(made.seconds / 60)
    lines = [text.format(minutes=minutes, code=made.code)]
    return CommandReply("\n".join([*lines, *proposed(asked.person, say)]))


async def unlink(asked: CommandRequest) -> CommandReply:
    """Take an account away: one of one's own, or any by an owner's word."""
    say, wanted = asked.say, asked.rest or asked.account
    if wanted not in (asked.account, *asked.person.accounts) and not asked.is_owner:
        return CommandReply(
            say("{account} is none of your accounts.").format(account=wanted)
        )
    message = UnlinkAccount(wanted, asked.account)
    outcome = await asked.ask(names.PEOPLE, message)
    if isinstance(outcome, Linked) and outcome.outcome == "done":
        text = say("{account} is an account of its own again.")
        return CommandReply(text.format(account=wanted))
    return linked(asked, outcome)


def linked(asked: CommandRequest, outcome: object) -> CommandReply:
    """Say what came of linking."""
    if not isinstance(outcome, Linked):
        raise Unanswered
    if outcome.person is None:
        return CommandReply(asked.say(NOT_LINKED[outcome.outcome]))
    text = asked.say(
        "These accounts are one person's now: {accounts}. /unlink takes that back."
    )
    return CommandReply(text.format(accounts=", ".join(outcome.person.accounts)))


MOST_SHOWN = 20

PEOPLE_IN_PRIVATE = "Please write this to me in a direct chat: it names people."
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
        return CommandReply(say(PEOPLE_IN_PRIVATE))
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
