"""Commands that report: agents, skills, tasks, costs, the conversation, its queue."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, cast

import msgspec

from actors import names
from actors.agents.messages import ListStaff, StaffList
from actors.commands.context import CommandReply, CommandRequest, Unanswered
from actors.journal.records import USAGE, UsageRecord
from actors.memory import scopes
from actors.messages.busy_policies import POLICY_RULES, BusyPolicy
from actors.messages.commands import as_command, near
from actors.messages.inbound import Inbound
from actors.messages.keys import account_of
from actors.messages.progress import Pace
from actors.models.budget import Amount, Budget
from actors.models.messages import ListModels, ModelList, OwnBudgets
from actors.models.spending import read_row
from actors.people.lookup import ListPeople, PeopleList, chat_of
from actors.rules.text.durations import spoken
from actors.schedule.rows import listed
from runtime.store.rows import StoredMessage, decoded

PAGE = 1000

MOST_SHOWN = 10
"""Lines of one list; of more, the number is told."""

SHOWN = 80
"""Characters shown of a message."""


POLICIES: dict[BusyPolicy, str] = {
    "serial": "What comes meanwhile is answered one after the other.",
    "followup": "What comes meanwhile is answered together afterwards.",
    "interrupt": "What comes meanwhile interrupts the answer to you.",
    "steer": "What comes meanwhile is taken into the answer to you.",
}
"""What `/status` says of each busy policy."""

PACES: dict[Pace, str] = {
    "long-running": "The present answer takes long.",
    "stalled": "The present answer has stalled: nothing has come for a while.",
    "stuck": "The present answer is stuck, and is being cancelled.",
}
"""What it says of an answer that does not get on."""


# Chosen: what fits on a screen.
MOST_LISTED = 20
"""People that `/who` lists."""


async def who(asked: CommandRequest) -> CommandReply:
    """List the agents, and what they do."""
    say, here = asked.say, asked.persona.name
    lines = [say("Agents here:")]
    found = await asked.ask(names.STAFF, ListStaff())
    if not isinstance(found, StaffList):
        raise Unanswered
    for name, about in found.agents.items():
        mark = say(" (this is me)") if name == here else ""
        shown = found.shown.get(name, name)
        lines.append(f"@{shown}{mark}{f': {about}' if about else ''}")
    return CommandReply("\n".join([*lines, *await _people(asked)]))


async def _people(asked: CommandRequest) -> list[str]:
    """List who else wrote in this group, and when."""
    if asked.inbound.is_direct:
        return []
    say, now = asked.say, asked.services.clock.wall()
    found = await asked.ask(names.PEOPLE, ListPeople(chat_of(asked.inbound)))
    if not isinstance(found, PeopleList):
        raise Unanswered
    others = [each for key, each in found.people.items() if key != asked.account]
    text = say("{name}, last here {span} ago")
    lines = [
        text.format(name=each.name, span=spoken(max(0.0, now - each.seen_at), say))
        for each in others[:MOST_LISTED]
    ]
    return ["", say("People here:"), *lines] if lines else []


async def skills(asked: CommandRequest) -> CommandReply:
    """List the skills of this agent, as commands."""
    names = asked.persona.skills
    if not names:
        return CommandReply(asked.say("I have no skills here."))
    lines = [asked.say("My skills; what follows the command is what I shall do:")]
    return CommandReply(
        "\n".join([*lines, *(f"/{as_command(each)}" for each in names)])
    )


async def status(asked: CommandRequest) -> CommandReply:
    """Show the model, the conversation's counters, and how long all this runs."""
    say, standing, services = asked.say, asked.standing, asked.services
    model = asked.person.model or asked.persona.config.model
    counted = standing.counted
    up = services.clock.monotonic() - services.started_at
    lines = [
        say("Agent: {agent}, model: {model}").format(
            agent=asked.persona.shown, model=model
        ),
        say("This conversation: {count} messages, about {tokens} tokens").format(
            count=counted.message_count, tokens=counted.tokens
        ),
        say("Running for {span}.").format(span=spoken(up, say)),
    ]
    if standing.waiting:
        text = say("Waiting behind the present answer: {count}")
        lines.append(text.format(count=standing.waiting))
    elif standing.is_busy:
        lines.append(say("I am writing an answer."))
    if standing.is_busy and standing.pace != "running":
        lines.append(say(PACES[standing.pace]))
    lines.append(say(POLICIES[standing.policy]))
    lines += await _budgets(asked)
    return CommandReply("\n".join([*lines, *await _refused(asked, model)]))


async def _budgets(asked: CommandRequest) -> list[str]:
    """List what is left of the budgets of the person who asks, a line for each."""
    say = asked.say
    try:
        found = await asked.ask(names.MODELS, OwnBudgets(asked.account))
    except Unanswered:
        return []  # the rest is worth telling
    lines: list[str] = []
    for budget, spent in cast("tuple[tuple[Budget, Amount], ...]", found):
        parts: list[str] = []
        if (usd := budget.hard.usd) is not None:
            parts.append(f"${max(0.0, usd - spent.usd):.4f} / ${usd:.4f}")
        if (most := budget.hard.tokens) is not None:
            parts.append(f"{max(0, most - spent.tokens)} / {most} tokens")
        text = say("Left of your budget for this month: {left}")
        if budget.period == "day":
            text = say("Left of your budget for today: {left}")
        lines.append(text.format(left=", ".join(parts)))
    return lines


async def _refused(asked: CommandRequest, model: str) -> list[str]:
    """Say that a model cannot answer, and to owners which keys are not taken."""
    try:
        found = await asked.ask(names.MODELS, ListModels())
    except Unanswered:
        return []  # the rest is worth telling
    if not (isinstance(found, ModelList) and found.refused):
        return []
    if asked.is_owner:
        text = asked.say("Accounts that did not take their key: {names}")
        return [text.format(names=", ".join(found.refused))]
    own = next((x.accounts for x in found.models if x.name == model), ())
    is_out = own and set(own) <= set(found.refused)
    text = (
        "This model's key was refused: only those who run this company can mend that."
    )
    return [asked.say(text)] if is_out else []


async def tasks(asked: CommandRequest) -> CommandReply:
    """Show what is done here, what waits for leave, and what is to come."""
    say, inbound = asked.say, asked.inbound
    lines: list[str] = []
    for each in asked.services.board.here(inbound.address):
        text = say("{agent} waits for leave to run `{tool}`: /approve {id}")
        lines.append(text.format(agent=each.agent, tool=each.tool, id=each.id))
    for row, task in await open_here(asked):
        if task.chain.agents and account_of(task) == asked.account:
            source, target = (*task.chain.agents[-2:],)[-2:]
            text = say("{target} works for {source}: {task}")
            if row.state == "accepted":
                text = say("{target} is to work for {source}: {task}")
            shown = shortened(task.text)
            lines.append(text.format(target=target, source=source, task=shown))
    services, is_direct = asked.services, inbound.is_direct
    scope = scopes.writing(inbound.address, asked.person.id, is_direct=is_direct)
    lines += await listed(services.store, scope, services.find_zone)
    if not lines:
        return CommandReply(
            say("No tasks here; /queue shows what waits for an answer.")
        )
    return CommandReply("\n".join(bounded(asked, lines)))


async def open_here(asked: CommandRequest) -> list[tuple[StoredMessage, Inbound]]:
    """Read the messages of this chat that are not settled, the oldest first."""
    address = asked.inbound.address
    stream = f"{address.connector}/{address.chat}"
    found: list[tuple[StoredMessage, Inbound]] = []
    after = 0
    while True:
        rows = await asked.services.store.unsettled(after, PAGE)
        for row in rows:
            after = row.number
            if row.stream == stream and (inbound := decoded(row, Inbound)) is not None:
                found.append((row, inbound))
        if len(rows) < PAGE:
            return found


def bounded(asked: CommandRequest, lines: list[str]) -> list[str]:
    """Show only the first of many lines, and how many more there are."""
    if len(lines) <= MOST_SHOWN:
        return lines
    more = asked.say("… and {count} more").format(count=len(lines) - MOST_SHOWN)
    return [*lines[:MOST_SHOWN], more]


def shortened(text: str) -> str:
    """Show the beginning of a text, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"


class CostSum(msgspec.Struct):
    """Turns, tokens and dollars of several turns."""

    turns: int = 0
    tokens: int = 0
    cost: float = 0.0
    """US dollars."""

    def add(self, body: UsageRecord) -> None:
        """Count one turn more."""
        self.turns += 1
        self.tokens += body.input_tokens + body.output_tokens
        self.cost += body.cost


async def cost(asked: CommandRequest) -> CommandReply:
    """Show what somebody's own turns cost, and to owners what all did."""
    say = asked.say
    now = datetime.fromtimestamp(asked.services.clock.wall(), UTC)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    month = day.replace(day=1)
    sums = await add_up(asked, month.timestamp(), day.timestamp())
    lines = [
        line(say("You, today: {cost} in {turns} turns, {tokens} tokens"), sums[0]),
        line(say("You, this month: {cost} in {turns} turns, {tokens} tokens"), sums[1]),
    ]
    if asked.is_owner:
        today = say("All, today: {cost} in {turns} turns, {tokens} tokens")
        whole = say("All, this month: {cost} in {turns} turns, {tokens} tokens")
        lines += [line(today, sums[2]), line(whole, sums[3])]
    return CommandReply("\n".join(lines))


def line(text: str, found: CostSum) -> str:
    """Write one sum."""
    cost_ = f"${found.cost:.4f}"
    return text.format(cost=cost_, turns=found.turns, tokens=found.tokens)


async def add_up(
    asked: CommandRequest, since: float, today: float
) -> tuple[CostSum, CostSum, CostSum, CostSum]:
    """Add up the ledger since some Unix seconds: one's own today and since, and all."""
    own_today, own, all_today, everything = CostSum(), CostSum(), CostSum(), CostSum()
    accounts = asked.person.accounts if asked.inbound.is_direct else (asked.account,)
    at, number = since, 0
    while True:
        rows = await asked.services.store.records_since(USAGE, at, number, PAGE)
        for row in rows:
            at, number = row.at, row.number
            body = read_row(row, UsageRecord)
            if body is None:
                continue
            is_own = f"{body.connector}/{body.sender_id}" in accounts
            is_today = row.at >= today
            chosen = (
                (own, is_own),
                (own_today, is_own and is_today),
                (everything, True),
                (all_today, is_today),
            )
            for each, counts in chosen:
                if counts:
                    each.add(body)
        if len(rows) < PAGE:
            return own_today, own, all_today, everything


DEFAULT: Literal["default"] = "default"


async def queue(asked: CommandRequest) -> CommandReply:
    """Show what is done with messages that come meanwhile, or choose it."""
    if not asked.rest:
        return CommandReply("\n".join([*policy(asked), *await waiting(asked)]))
    return choose(asked, asked.rest.casefold())


def choose(asked: CommandRequest, wanted: str) -> CommandReply:
    """Have messages of this conversation treated otherwise from now on."""
    say, account = asked.say, asked.inbound.address.connector
    if not asked.services.accounts[account].abilities.shows_asides:
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
