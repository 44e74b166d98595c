"""Commands that choose who answers: `/model` and `/models`."""

from __future__ import annotations

from collections.abc import Iterable

from actors import names
from actors.commands.context import CommandReply, CommandRequest, Unanswered
from actors.messages.commands import near
from actors.models.messages import ListedModel, ListModels, ModelList
from actors.people.lookup import ChangePerson, may_choose

DEFAULT = "default"

MOST_LISTED = 60
"""Models of one list; more have to be looked for by provider."""


async def model(asked: CommandRequest) -> CommandReply:
    """Show or choose the model that answers the asking person."""
    say, own = asked.say, asked.persona.config.model
    if not asked.rest:
        text = say(
            "{model} answers you. /models lists others, /model NAME chooses one,"
            " /model default goes back."
        )
        return CommandReply(text.format(model=asked.person.model or own))
    if asked.rest == DEFAULT:
        await asked.ask(
            names.PEOPLE, ChangePerson(asked.account, model="", provider="")
        )
        return CommandReply(say("{model} answers you again.").format(model=own))
    known = await choosable(asked)
    wanted = asked.rest.casefold()
    # By its own name, or by the provider's, which people know better.
    found = [m for m in known if wanted in (m.name.casefold(), m.model.casefold())]
    if not found:
        return CommandReply(unknown(asked, [each.name for each in known]))
    chosen = next((m for m in found if asked.person.provider in m.accounts), found[0])
    provider = asked.person.provider if asked.person.provider in chosen.accounts else ""
    return await choose(asked, chosen, provider)


async def models(asked: CommandRequest) -> CommandReply:
    """List the models, or choose a provider, and with it the first of its models."""
    say, known = asked.say, await choosable(asked)
    if not asked.rest:
        return CommandReply("\n".join(listed(asked, known)))
    providers = {p.casefold(): p for each in known for p in each.accounts}
    provider = providers.get(asked.rest.casefold())
    if provider is None:
        return CommandReply(unknown(asked, providers.values()))
    there = [each for each in known if provider in each.accounts]
    now = asked.person.model or asked.persona.config.model
    chosen = next((each for each in there if each.name == now), there[0])
    told = await choose(asked, chosen, provider)
    if len(there) == 1:
        return told
    text = say("Also there: {models}")
    others = ", ".join(each.name for each in there if each != chosen)
    return CommandReply(f"{told.text}\n{text.format(models=others)}")


async def choose(
    asked: CommandRequest, chosen: ListedModel, provider: str
) -> CommandReply:
    """Have a model answer somebody from now on."""
    change = ChangePerson(asked.account, model=chosen.name, provider=provider)
    await asked.ask(names.PEOPLE, change)
    text = asked.say("{model} answers you from now on; /model default goes back.")
    return CommandReply(text.format(model=label(chosen)))


async def choosable(asked: CommandRequest) -> tuple[ListedModel, ...]:
    """List the models that people may choose.

    Raises:
        Unanswered: nobody knows at the moment.
    """
    found = await asked.ask(names.MODELS, ListModels())
    if not isinstance(found, ModelList):
        raise Unanswered
    return tuple(m for m in found.models if may_choose(m.name, asked.services))


def listed(asked: CommandRequest, known: tuple[ListedModel, ...]) -> list[str]:
    """Write the list, the one in use marked."""
    say = asked.say
    if not known:
        return [say("There is no model to choose from.")]
    now = asked.person.model or asked.persona.config.model
    lines = [say("Models, /model NAME chooses one:")]
    for each in known[:MOST_LISTED]:
        mark = "→ " if each.name == now else ""
        lines.append(f"{mark}{label(each)}: {', '.join(each.accounts)}")
    if len(known) > MOST_LISTED:
        text = say("… and {count} more; /models PROVIDER looks at one provider.")
        lines.append(text.format(count=len(known) - MOST_LISTED))
    return lines


def label(each: ListedModel) -> str:
    """Write a model's name, with its provider's name of it; a program may have none."""
    has_another = each.model not in {"", each.name}
    return f"{each.name} ({each.model})" if has_another else each.name


def unknown(asked: CommandRequest, known: Iterable[str]) -> str:
    """Say that there is none of that name, and what it may have meant."""
    close = near(asked.rest, known)
    text = asked.say("There is no '{word}' to choose. /models lists what there is.")
    line = text.format(word=asked.rest[:64])
    if not close:
        return line
    hint = asked.say("Did you mean {names}?").format(names=", ".join(close))
    return f"{line} {hint}"
