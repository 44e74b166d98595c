"""Checks models, their accounts, and budgets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from actors.config.agents import AgentConfig
from actors.config.limits import BudgetConfig
from actors.config.routes import RoutingConfig
from actors.models.catalogue import PriceList
from connectors.config.app import AppConfig
from connectors.config.checks import Way, check_address, check_zone, slash_hint, unknown
from connectors.config.models import (
    KINDS,
    CliModelConfig,
    ConnectionConfig,
    EmbeddedModelConfig,
    HttpModelConfig,
    ModelConfig,
    ScriptedModelConfig,
    kind_of,
    load_prices,
    prices_of,
)
from connectors.config.shipped import shipped_prices
from runtime.config.loader import Complaint, close_to
from runtime.errors import SettingsError

WRITTEN_HERE = frozenset({
    *("model", "stream", "tools"),
    *("messages", "contents", "input"),
    *("system", "instructions"),
})  # fmt: skip
"""What no `extra_body` may have."""


def check_routing(
    way: Way, routing: RoutingConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check the models that an agent may have answer beside its own."""
    for index, hint in enumerate(routing.hints):
        place = (*way, "hints", index)
        yield from unknown((*place, "model"), "model", hint.model, app.models)
        for number, word in enumerate(hint.words):
            if not word.strip():
                text = "an empty word is in every message"
                yield Complaint((*place, "words", number), text, "take it out")
    for field in ("classifier", "cheap", "strong"):
        name = getattr(routing, field)
        if name:
            yield from unknown((*way, field), "model", name, app.models)


def check_models(app: AppConfig) -> Iterator[Complaint]:
    """Check the models' files, addresses, accounts and what they refer to."""
    for name, model in app.models.items():
        way: Way = ("models", name)
        # A program is `doctor`'s to find.
        if isinstance(model, ScriptedModelConfig):
            yield from check_script((*way, "script"), model.script)
        elif isinstance(model, HttpModelConfig) and model.accounts:
            yield from check_model_accounts(way, model, app)
        elif isinstance(model, HttpModelConfig):
            yield from check_reach(way, model)
            if name in app.accounts:
                text = f"there is an account {name!r}, and this model is one, too"
                hint = f'add accounts = ["{name}"], or rename one of them'
                yield Complaint(way, text, hint)
        if isinstance(model, HttpModelConfig):
            yield from check_extra(way, model)
        yield from check_others(way, name, app)
    yield from check_accounts(app)
    yield from check_servers_told(app)


def check_servers_told(app: AppConfig) -> Iterator[Complaint]:
    """Warn of servers of tools that an agent's program is not told of."""
    for name, agent in app.agents.items():
        model = app.models.get(agent.model)
        if not isinstance(model, CliModelConfig) or model.servers_flag:
            continue
        for index, tool in enumerate(agent.tools):
            if tool.startswith("mcp:"):
                text = f"{tool} comes to nothing: models.{agent.model} takes no servers"
                hint = "give that model its servers_flag, or take this out"
                way: Way = ("agents", name, "tools", index)
                yield Complaint(way, text, hint, is_warning=True)


def check_script(way: Way, script: Path) -> Iterator[Complaint]:
    """Check that a scripted model's rules are there."""
    if not script.is_file():
        hint = "the path starts at the folder of the settings file"
        yield Complaint(way, f"there is no file {script}", hint)


def check_extra(way: Way, model: HttpModelConfig) -> Iterator[Complaint]:
    """Check that further parameters leave alone what a conversation consists of."""
    for name in sorted(WRITTEN_HERE.intersection(model.extra_body)):
        text = f"{name} is written by Callboard for each request"
        yield Complaint((*way, "extra_body", name), text, "take it out")


def check_accounts(app: AppConfig) -> Iterator[Complaint]:
    """Check the accounts' addresses."""
    for name, account in app.accounts.items():
        yield from check_reach(("accounts", name), account)


def check_model_accounts(
    way: Way, model: HttpModelConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check the accounts of a model that names some."""
    for index, name in enumerate(model.accounts):
        place = (*way, "accounts", index)
        yield from unknown(place, "account", name, app.accounts)
        account = app.accounts.get(name)
        if account is not None and not isinstance(model, KINDS[type(account)]):
            text = f"account {name!r} is of kind {kind_of(account)!r}"
            yield Complaint(place, text, f"this model is {kind_of(model)!r}")
        if name in model.accounts[:index]:
            yield Complaint(place, f"account {name!r} stands here twice")
    usual = msgspec.convert({"model": model.model}, type(model))
    for field in ConnectionConfig.__struct_fields__:
        if getattr(model, field) != getattr(usual, field):
            text = f"{field} belongs to the accounts that this model names"
            yield Complaint((*way, field), text, "move it to [accounts.<name>]")


def check_others(way: Way, name: str, app: AppConfig) -> Iterator[Complaint]:
    """Check which models a model refers to, and that it never comes back to itself."""
    model = app.models[name]
    if isinstance(model, EmbeddedModelConfig):
        return
    others = [each for each in app.models if each != name]
    for index, other in enumerate(model.fallbacks):
        yield from refer((*way, "fallbacks", index), name, other, others)
    if isinstance(model, HttpModelConfig) and model.larger:
        yield from refer((*way, "larger"), name, model.larger, others)
    circles = {"fallbacks": fallbacks(app), "larger": larger(app)}
    for field, steps in circles.items():
        circle = find_circle(name, steps)
        if len(circle) > 2 and circle[0] == min(circle):  # told once, not by each
            text = f"{field} go in a circle: {' → '.join(circle)}"
            yield Complaint((*way, field), text, "take one step out")


def refer(way: Way, name: str, other: str, others: list[str]) -> Iterator[Complaint]:
    """Check a model's reference to another."""
    if other == name:
        yield Complaint(way, f"model {name!r} refers to itself", "take it out")
    else:
        yield from unknown(way, "model", other, others)


def fallbacks(app: AppConfig) -> dict[str, tuple[str, ...]]:
    """Give each model's fallbacks."""
    return {
        name: () if isinstance(model, EmbeddedModelConfig) else model.fallbacks
        for name, model in app.models.items()
    }


def larger(app: AppConfig) -> dict[str, tuple[str, ...]]:
    """Give the larger one of each model that has one."""
    return {
        name: (model.larger,)
        if isinstance(model, HttpModelConfig) and model.larger
        else ()
        for name, model in app.models.items()
    }


def find_circle(start: str, steps: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Find a way from a name back to itself; empty if there is none."""
    ways = [[start]]
    seen = {start}
    while ways:
        way = ways.pop()
        for step in steps.get(way[-1], ()):
            if step == start:
                return [*way, start]
            if step not in seen:
                seen.add(step)
                ways.append([*way, step])
    return []


def check_reach(way: Way, settings: ConnectionConfig) -> Iterator[Complaint]:
    """Check how a provider is reached."""
    place = (*way, "base_url")
    has_key = settings.api_key is not None
    yield from check_address(place, settings.base_url, has_key=has_key)


def check_budgets(app: AppConfig) -> Iterator[Complaint]:
    """Check the budgets, and the price list and time zone they are added up by."""
    for index, budget in enumerate(app.budgets):
        yield from check_budget(("budgets", index), budget, app)
    yield from check_prices(app)
    yield from check_zone(("ledger", "time_zone"), app.ledger.time_zone)


def check_prices(app: AppConfig) -> Iterator[Complaint]:
    """Check the price list, and that budgets in dollars see what is spent."""
    prices, way = app.ledger.prices, ("ledger", "prices")
    in_dollars = [
        (n, each) for n, each in enumerate(app.budgets) if is_in_dollars(each)
    ]
    if prices is not None and not prices.is_file():
        hint = "the path starts at the folder of the settings file"
        yield Complaint(way, f"there is no file {prices}", hint)
    elif prices is not None or in_dollars:
        try:
            known = load_prices(prices or shipped_prices())
        except SettingsError as wrong:
            for problem in wrong.problems:
                text = f"this list is wrong: {problem}"
                yield Complaint(way, text, problem.hint)
            return
        unpriced = {n for n, each in app.models.items() if has_no_price(each, known)}
        for index, budget in in_dollars:
            asked = spending(budget, app, may_be_chosen(app))
            is_needed = spending(budget, app, ())
            for name in sorted(unpriced & asked):
                is_chosen = name not in is_needed
                yield unseen(("budgets", index), budget, name, is_chosen=is_chosen)
            if budget.hard_tokens is None:
                untold = {n for n in asked if may_hide_cost(app.models[n])}
                yield from untold_cost(("budgets", index), untold)


def may_hide_cost(model: ModelConfig) -> bool:
    """Whether a model is a program that may not say what it costs, as Codex."""
    if not isinstance(model, CliModelConfig):
        return False
    return not model.command[0].rpartition("/")[2].startswith("claude")


def untold_cost(way: Way, models: Collection[str]) -> Iterator[Complaint]:
    """Warn of programs whose dollars a budget may not see."""
    for name in sorted(models):
        text = f"the dollars of model {name!r} count only if its program tells them"
        yield Complaint(way, text, "use hard_tokens, too", is_warning=True)


def is_in_dollars(budget: BudgetConfig) -> bool:
    """Whether a budget counts dollars."""
    return budget.soft_usd is not None or budget.hard_usd is not None


def has_no_price(model: ModelConfig, known: PriceList) -> bool:
    """Whether a provider may ask for money of which we know nothing."""
    is_remote = isinstance(model, HttpModelConfig)
    return is_remote and not prices_of(model, known).version


def may_be_chosen(app: AppConfig) -> Collection[str]:
    """Name the models that people may choose for themselves."""
    patterns = app.commands.models
    return [x for x in app.models if any(fnmatchcase(x, each) for each in patterns)]


def spending(budget: BudgetConfig, app: AppConfig, chosen: Collection[str]) -> set[str]:
    """Name the models that may answer those whom a budget concerns.

    Args:
        chosen: models that people may choose.
    """
    found: set[str] = set()
    who = budget.who if budget.scope == "agent" else "*"
    ways = [budget.downgrade_to, app.compaction.model]
    for name, agent in app.agents.items():
        if fnmatchcase(name, who):
            ways += [*asked_by(agent), *chosen]
    if app.hiring.who != "nobody" and not fits_exactly(who):
        ways += [
            each
            for each in app.models
            if any(fnmatchcase(each, allowed) for allowed in app.hiring.models)
        ]
    steps = (fallbacks(app), larger(app))
    while ways:
        name = ways.pop()
        if name in app.models and name not in found:
            found.add(name)
            ways += [other for each in steps for other in each[name]]
    return found


def asked_by(agent: AgentConfig) -> list[str]:
    """Name the models that an agent's settings have asked; some are empty."""
    routing, own = agent.routing, agent.autonomous
    return [
        *(agent.model, routing.classifier, routing.cheap, routing.strong),
        *(hint.model for hint in routing.hints),
        *(agent.groups.check_model, agent.heartbeat.model, agent.scheduled.model),
        *(own.planner, own.executor),
    ]


def fits_exactly(pattern: str) -> bool:
    """Whether a pattern fits one name only."""
    return not any(each in pattern for each in "*?[")


def unseen(way: Way, budget: BudgetConfig, model: str, *, is_chosen: bool) -> Complaint:
    """Say that a budget in dollars does not see what a model spends.

    Args:
        is_chosen: whether only people have it asked, by `/model`.
    """
    hint = f"give [models.{model}] input_price and output_price (0 is one, too)"
    is_bound = budget.hard_usd is not None and budget.hard_tokens is None
    text = "hard_usd cannot hold" if is_bound else "its dollars are not counted"
    hint += ", or use hard_tokens" if is_bound else ""
    hint += ", or leave it out of commands.models" if is_chosen else ""
    text += f": model {model!r} has no price"
    return Complaint(way, text, hint, is_warning=not is_bound)


def check_sessions(app: AppConfig) -> Iterator[Complaint]:
    """Check how long conversations last, and who sums them up."""
    yield from check_zone(("sessions", "time_zone"), app.sessions.time_zone)
    if app.compaction.model:
        way = ("compaction", "model")
        yield from unknown(way, "model", app.compaction.model, app.models)


def check_budget(way: Way, budget: BudgetConfig, app: AppConfig) -> Iterator[Complaint]:
    """Check one budget."""
    pairs = {
        "usd": (budget.soft_usd, budget.hard_usd),
        "tokens": (budget.soft_tokens, budget.hard_tokens),
    }
    if all(limit is None for pair in pairs.values() for limit in pair):
        yield Complaint(way, "this budget limits nothing", "add hard_usd or soft_usd")
    for unit, (soft, hard) in pairs.items():
        if soft is not None and hard is not None and soft > hard:
            text = f"soft_{unit} is above hard_{unit}"
            yield Complaint((*way, f"soft_{unit}"), text, "lower it")
    if budget.on_soft == "downgrade":
        place = (*way, "downgrade_to")
        yield from unknown(place, "model", budget.downgrade_to, app.models)
    elif budget.downgrade_to:
        hint = 'add on_soft = "downgrade"'
        yield Complaint((*way, "downgrade_to"), "is never used", hint)
    yield from check_who((*way, "who"), budget, app)


def check_who(way: Way, budget: BudgetConfig, app: AppConfig) -> Iterator[Complaint]:
    """Complain of a budget that concerns nobody."""
    if budget.scope == "all" and budget.who != "*":
        hint = 'use scope = "agent", "connector" or "user"'
        yield Complaint(way, "a budget for all names nobody", hint)
    elif budget.scope in {"agent", "connector"}:
        known = app.agents if budget.scope == "agent" else app.connectors
        if not any(fnmatchcase(name, budget.who) for name in known):
            text = f"no {budget.scope} fits {budget.who!r}"
            yield Complaint(way, text, close_to(budget.who, known))
    elif budget.scope == "user" and budget.who != "*" and "/" not in budget.who:
        text = f"{budget.who!r} is nobody: write connector/sender id"
        hint = slash_hint(budget.who, app.connectors, 'for example "http/sam"')
        yield Complaint(way, text, hint)
