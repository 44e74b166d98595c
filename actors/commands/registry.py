"""Every slash command, in the order of `/help`. To add one, add an entry here.

An entry names what answers the command, what `/help` says of it, and who may use it.
Everything else follows: `/help`, suggestions for mistyped words, the settings
`commands.who` and `commands.who_in_groups`, and the list that Discord offers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import msgspec

from actors.commands import memory, models, people, status
from actors.commands.context import CommandReply, CommandRequest
from actors.config.access import Who
from actors.messages.commands import OtherCommand, as_command, parse_command
from actors.messages.inbound import Inbound
from actors.rules.groups.activation import CommandScope

Answer = Callable[[CommandRequest], Awaitable[CommandReply]]

ADMIN = "admin"
"""The role, on a platform, of those who may change a chat's own settings."""


class SlashCommand(msgspec.Struct, frozen=True):
    """One command: what answers it, what it takes, who may use it."""

    answer: Answer | None
    """None: it changes what runs, and is carried out there.

    `/stop`: actors/session/stop.py and actors/inbound/router.py; `/approve`, `/deny`:
    actors/approvals/board.py.
    """

    meaning: str
    """One line for `/help`, in English; `config/locale` may translate it."""

    arguments: str = ""
    """What may follow the word, for `/help`."""

    who: Who = "everyone"
    in_groups: Who | None = None
    """Who may use it in chats that several people share; None: as `who` says."""

    is_fixed: bool = False
    """Whether the settings cannot change who may use it."""

    is_general: bool = False
    """Whether it is about no agent in particular: in a group with several agents one of
    them answers it, though nobody says which."""


async def help_(question: CommandRequest) -> CommandReply:
    """List the commands that the asking person may use."""
    say, services = question.say, question.services
    chosen = services.commands.who, services.commands.who_in_groups
    lines: list[str] = []
    for word, command in COMMANDS.items():
        if may_use(word, question.inbound, services.approvers, chosen):
            arguments = f" {command.arguments}" if command.arguments else ""
            lines.append(f"/{word}{arguments} - {say(command.meaning)}")
    skills = [f"/{as_command(each)}" for each in question.persona.skills]
    if skills:
        lines.append(say("My skills: {skills}").format(skills=", ".join(skills)))
    return CommandReply("\n".join(lines))


async def new(question: CommandRequest) -> CommandReply:
    """Begin a new conversation."""
    return CommandReply(question.say("A new conversation begins."), reset="new")


async def clear(question: CommandRequest) -> CommandReply:
    """Clear the conversation, once the agent has noted what matters."""
    return CommandReply(question.say("This conversation is cleared."), reset="clear")


COMMANDS: Mapping[str, SlashCommand] = {
    "help": SlashCommand(help_, "show this list", is_fixed=True, is_general=True),
    "start": SlashCommand(
        people.start, "say what this is, and how to begin", is_general=True
    ),
    "stop": SlashCommand(
        None,
        "stop what you asked here, and what other agents do because of it",
        "[all]",
        is_fixed=True,
    ),
    "new": SlashCommand(new, "begin a new conversation", in_groups="owners"),
    "clear": SlashCommand(clear, "clear this conversation", in_groups="owners"),
    "forget": SlashCommand(
        memory.forget,
        "end this conversation and what a program keeps of it; or forget facts",
        "[facts|ID]",
        in_groups="owners",
    ),
    "memory": SlashCommand(
        memory.memory, "show what is remembered of you", "[forget ID]"
    ),
    "model": SlashCommand(
        models.model,
        "choose the model that answers you",
        "[NAME|default]",
        in_groups="owners",
    ),
    "models": SlashCommand(
        models.models,
        "list the models, or choose a provider",
        "[PROVIDER]",
        in_groups="owners",
    ),
    "language": SlashCommand(
        people.language,
        "choose the language in which you are spoken to",
        "[CODE|auto]",
        is_general=True,
    ),
    "who": SlashCommand(status.who, "list the agents and people here", is_general=True),
    "skills": SlashCommand(
        status.skills, "list the skills of this agent, each a command of its own"
    ),
    "whoami": SlashCommand(
        people.whoami, "show as whom you are known here", is_general=True
    ),
    "link": SlashCommand(
        people.link,
        "show that another account is yours, too",
        "[CODE]",
        is_general=True,
    ),
    "unlink": SlashCommand(
        people.unlink,
        "take an account away from you again",
        "[ACCOUNT]",
        is_general=True,
    ),
    "tasks": SlashCommand(
        status.tasks,
        "show what is being done here, and what waits for leave",
        is_general=True,
    ),
    "status": SlashCommand(
        status.status, "show the model, this conversation, and how long this runs"
    ),
    "cost": SlashCommand(
        status.cost, "show what the models cost", who="owners", is_general=True
    ),
    "queue": SlashCommand(
        status.queue,
        "show which messages wait; choose what is done with those that come meanwhile",
        "[serial|followup|interrupt|steer|default]",
        in_groups="admins",
    ),
    "pair": SlashCommand(
        people.pair,
        "show who asks to be let in; let somebody in, or not, by their code",
        "[approve CODE|deny CODE|revoke ACCOUNT]",
        who="owners",
        is_fixed=True,
        is_general=True,
    ),
    "approve": SlashCommand(
        None,
        "let a tool run: /approve 3F, or /approve 3F always",
        "ID [always]",
        is_fixed=True,
    ),
    "deny": SlashCommand(None, "do not let a tool run: /deny 3F", "ID", is_fixed=True),
}
"""All commands by their words; an agent's skills are commands beside these."""


def group_command(inbound: Inbound) -> CommandScope:
    """Say whom a command of a group is about that names no agent.

    Empty: it is no command of ours, names somebody, or no person gave it.
    """
    command = parse_command(inbound.text)
    if inbound.is_bot or not isinstance(command, OtherCommand) or command.agent:
        return ""
    known = COMMANDS.get(command.word)
    if known is None or known.answer is None:
        return ""
    return "company" if known.is_general else "agent"


def skill_named(text: str, skills: Sequence[str]) -> str:
    """Name the skill that a message asks for by its command; empty for most messages.

    A command of the runtime comes before a skill of the same name.
    """
    command = parse_command(text)
    if not isinstance(command, OtherCommand) or command.word in COMMANDS:
        return ""
    return next((s for s in skills if as_command(s) == as_command(command.word)), "")


Rights = tuple[Mapping[str, Who], Mapping[str, Who]]
"""Who may use which command by the settings: in general, and in groups."""


def who_may(word: str, inbound: Inbound, rights: Rights) -> Who:
    """Say who may use a command where it was given, by the settings or by default."""
    chosen, in_groups = rights
    command = COMMANDS[word]
    if command.is_fixed:
        return command.who
    if inbound.is_direct:
        return chosen.get(word, command.who)
    usual = chosen.get(word, command.in_groups or command.who)
    return in_groups.get(word, usual)


def may_use(
    word: str, inbound: Inbound, owners: Collection[str], rights: Rights
) -> bool:
    """Tell whether the sender of a message may use a command.

    Args:
        owners: accounts that may use all but what nobody may.
    """
    who = who_may(word, inbound, rights)
    if who == "everyone" or (who == "admins" and ADMIN in inbound.roles):
        return True
    account = f"{inbound.address.connector}/{inbound.sender_id}"
    return who in {"admins", "owners"} and account in owners
