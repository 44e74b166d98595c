"""What people can say to the runtime instead of to an agent (F093 to F103).

Pure and total. A command is a word right after a `/` that opens the message, alone or
followed by a blank: `/stop`, `/stop@anna`, `/help me`. Everything else is ordinary
text, above all paths (`/usr/bin`) and a lone `/`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from actors.people_config import CommandWord, Who
from actors.rules.near import near_misses

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from actors.messages import Inbound

# Chosen: 32 characters, the longest command Telegram knows; longer is text.
_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]{0,31})(?:@([\w.-]+))?(?=\s|\Z)")

LONGEST_ID = 32
"""Letters of a request's id that are looked at."""

LONGEST_REST = 400
"""Characters after a command that are looked at, except for a skill's."""


class Spec(msgspec.Struct, frozen=True):
    """One command: what it takes, what it does, who may use it."""

    arguments: str
    meaning: str
    """One line for `/help`, in English; translated where it is shown."""

    who: Who = "everyone"
    in_groups: Who | None = None
    """The same in chats that several people share; None: no other."""


COMMANDS: dict[str, Spec] = {
    "help": Spec("", "show this list"),
    "start": Spec("", "say what this is, and how to begin"),
    "stop": Spec(
        "[all]", "stop what you asked here, and what other agents do because of it"
    ),
    "new": Spec("", "begin a new conversation", in_groups="owners"),
    "clear": Spec("", "clear this conversation", in_groups="owners"),
    "forget": Spec(
        "[facts|ID]",
        "end this conversation and what a program keeps of it; or forget facts",
        in_groups="owners",
    ),
    "memory": Spec("[forget ID]", "show what is remembered of you"),
    "model": Spec(
        "[NAME|default]", "choose the model that answers you", in_groups="owners"
    ),
    "models": Spec(
        "[PROVIDER]", "list the models, or choose a provider", in_groups="owners"
    ),
    "language": Spec("[CODE|auto]", "choose the language in which you are spoken to"),
    "who": Spec("", "list the agents here, and what they do"),
    "skills": Spec("", "list the skills of this agent, each a command of its own"),
    "whoami": Spec("", "show as whom you are known here"),
    "link": Spec("[CODE]", "show that another account is yours, too"),
    "unlink": Spec("[ACCOUNT]", "take an account away from you again"),
    "tasks": Spec("", "show what is being done here, and what waits for leave"),
    "status": Spec("", "show the model, this conversation, and how long this runs"),
    "cost": Spec("", "show what the models cost", "owners"),
    "queue": Spec(
        "[serial|followup|interrupt|steer|default]",
        "show which messages wait; choose what is done with those that come meanwhile",
        in_groups="admins",
    ),
    "pair": Spec(
        "[approve CODE|deny CODE|revoke ACCOUNT]",
        "show who asks to be let in; let somebody in, or not, by their code",
        "owners",
    ),
    "approve": Spec(
        "ID [always]", "let a tool run: /approve 3F, or /approve 3F always"
    ),
    "deny": Spec("ID", "do not let a tool run: /deny 3F"),
}
"""All commands, in the order of `/help`; a skill's are beside these."""

ADMIN = "admin"
"""What platforms say of who may change a chat's own settings."""

ALWAYS = frozenset({"help", "stop", "approve", "deny"})
"""Commands that have rules of their own, or none may be kept from."""


class Words(msgspec.Struct, frozen=True):
    """Ordinary text, for an agent."""


class Stop(msgspec.Struct, frozen=True):
    """Stop the current answer, and drop what waits."""

    agent: str = ""
    """Whom it is for, as written; empty: whoever hears it."""

    is_all: bool = False
    """Whether it is for what anybody asked here; owners may say so."""


class Decision(msgspec.Struct, frozen=True):
    """Let a tool call run, or not."""

    approval_id: str
    """In capitals; may name nothing that waits. Empty: the only one in the chat."""

    is_approved: bool
    is_lasting: bool = False
    """Whether further calls of that tool need not be asked for, for a while."""

    agent: str = ""
    """Whom it is for, as written; empty: whoever hears it."""


class Asked(msgspec.Struct, frozen=True):
    """Any other command, known or not; see `desk.py`."""

    word: str
    """The word without the `/`, in lower case."""

    rest: str = ""
    """What follows it, cut if it is long."""

    agent: str = ""
    """Whom it is for, as written; empty: whoever hears it. In a group it may be a
    bot that is none of ours."""


Command = Words | Stop | Decision | Asked


def parse_command(text: str) -> Command:
    """Tell whether a message of a person is a command, and which."""
    match = _COMMAND.match(text)
    if match is None:
        return Words()
    word, agent = match[1].lower(), match[2] or ""
    rest = text[match.end() : match.end() + LONGEST_REST].strip()
    match word:
        case "stop":
            return Stop(agent, is_all=rest.split()[:1] == ["all"])
        case "approve" | "deny":
            return _decision(word, rest.split(), agent) or Asked(word, rest, agent)
        case _:
            return Asked(word, rest, agent)


def _decision(word: str, rest: list[str], agent: str) -> Decision | None:
    is_approved = word == "approve"
    is_lasting = is_approved and rest[-1:] == ["always"]
    named = rest[:-1] if is_lasting else rest
    if len(named) > 1:
        return None
    approval_id = named[0][:LONGEST_ID].upper() if named else ""
    return Decision(approval_id, is_approved, is_lasting, agent)


def skill_named(text: str, skills: Sequence[str]) -> str:
    """Name the skill that a message asks for by its command (F103); mostly none.

    A command of the runtime comes before a skill of the same name.

    Args:
        text: what a person wrote.
        skills: names of those the agent has.
    """
    command = parse_command(text)
    if not isinstance(command, Asked) or command.word in COMMANDS:
        return ""
    return next((s for s in skills if as_command(s) == as_command(command.word)), "")


def as_command(skill: str) -> str:
    """Write a skill's name as a command: platforms know no `-` in one."""
    return re.sub(r"[^a-z0-9_]+", "_", skill.casefold()).strip("_")


Rights = tuple["Mapping[CommandWord, Who]", "Mapping[CommandWord, Who]"]
"""Who may use which command by the settings: in general, and in groups."""


def who_may(word: str, inbound: Inbound, rights: Rights) -> Who:
    """Say who may use a command where it was given, by the settings or as usual.

    Args:
        word: a known command.
        inbound: where it was given.
        rights: what the settings say.
    """
    chosen: dict[str, Who] = {str(each): who for each, who in rights[0].items()}
    in_groups: dict[str, Who] = {str(each): who for each, who in rights[1].items()}
    spec = COMMANDS[word]
    if word in ALWAYS:
        return "everyone"
    if inbound.is_direct:
        return chosen.get(word, spec.who)
    usual = chosen.get(word, spec.in_groups or spec.who)
    return in_groups.get(word, usual)


def may_use(
    word: str, inbound: Inbound, owners: Collection[str], rights: Rights
) -> bool:
    """Whether somebody may use a command.

    Args:
        word: a known command.
        inbound: who gave it, and where.
        owners: accounts that may use all but what nobody may.
        rights: what the settings say.
    """
    who = who_may(word, inbound, rights)
    if who == "everyone" or (who == "admins" and ADMIN in inbound.roles):
        return True
    account = f"{inbound.address.connector}/{inbound.sender_id}"
    return who in {"admins", "owners"} and account in owners


def near(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """Find commands that a mistyped one may have meant, the closest first."""
    return near_misses(word, known)
