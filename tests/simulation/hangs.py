"""Runs in which one model never answers, beside the same runs in which it does.

I8   whoever asks another model waits at most twice as long as in the run without it

People write the same words at the same moments in both. What a model says, and how
long it thinks, depends on the words alone, and nobody hands anything on: so two runs
differ by nothing but what the agents have in common. No other fault strikes.
"""

from __future__ import annotations

import zlib
from functools import partial

import msgspec

from actors.config.collaboration import CollaborationConfig
from actors.config.sessions import BufferingConfig
from actors.messages.deliveries import Delivery
from actors.messages.inbound import ModelRequest
from tests.fakes.company.company import Says, heard
from tests.simulation.edges.edges import HUNG, SimulatedModel
from tests.simulation.faults import FaultClass
from tests.simulation.run import Outcome, run_seed
from tests.simulation.trace import Violation
from tests.simulation.workload import Plan
from tests.simulation.world import Parts, World

# Chosen: a seventh of the seeds, of every kind; each plays its people twice more.
EVERY = 7
FIRST = 3

MOST = 2.0
"""How many times as long as without the hang anybody may wait."""

SHARE = 0.99
"""Of all messages: those that must not wait longer."""

THOUGHTS = (0.1, 0.5, 2.0)
"""Seconds that a model thinks."""

PATIENT = 1000
"""Messages that wait in a conversation: none is refused."""

OTHERS = ("swift", "sound")
"""Models of the agents whose model does not hang."""

Waits = dict[tuple[str, str], float]
"""By the platform's id of a message, and the agent: seconds until people saw its
answer."""


def has_hang(seed: int) -> bool:
    """Whether a seed plays its people with a model that hangs, too."""
    return seed % EVERY == FIRST


class SteadyModel(SimulatedModel):
    """Thinks as long about the same words in every run, and calls nobody."""

    def _good(self, request: ModelRequest) -> Says:
        roll = zlib.crc32(f"{request.agent} {heard(request)}".encode())
        return Says(f"says {request.agent}", after=THOUGHTS[roll % len(THOUGHTS)])


def on_models(seed: int, plan: Plan) -> Plan:
    """Give one agent of a plan the model that hangs, and each other a sound one.

    What depends on a moment is left out: commands, replies to what was said last,
    messages that are merged or refused. Else two runs are of different exchanges.
    """
    names = list(plan.agents)
    stuck = names[seed // EVERY % len(names)]
    agents = {
        name: msgspec.structs.replace(
            config,
            model=HUNG if name == stuck else OTHERS[place % len(OTHERS)],
            tools=(),
            delegates=(),
            groups=msgspec.structs.replace(
                config.groups, reply_window=0.0, pending_messages=0
            ),
        )
        for place, (name, config) in enumerate(plan.agents.items())
    }
    return msgspec.structs.replace(
        plan,
        agents=agents,
        habits={},
        collaboration=CollaborationConfig(visible=False),
        buffering=BufferingConfig(),
        limits=msgspec.structs.replace(plan.limits, max_waiting=PATIENT),
        acts=tuple(
            msgspec.structs.replace(act, is_reply=False)
            for act in plan.acts
            if not act.text.startswith("/")
        ),
    )


def play(
    seed: int, faults: frozenset[FaultClass], parts: Parts | None = None
) -> tuple[Outcome, Waits]:
    """Play a seed with several models; give how long each answer took."""
    found: list[Waits] = []
    whole = msgspec.structs.replace(
        parts or Parts(), model=SteadyModel, replan=partial(on_models, seed)
    )
    outcome = run_seed(
        seed, whole, faults, look=lambda world: found.append(waits_of(world))
    )
    return outcome, found[0]


def waits_of(world: World) -> Waits:
    """Tell how long each message waited for each agent whose model never hangs."""
    checkers, agents = world.checkers, world.plan.agents
    wrote = {f"{act.platform}:{act.number}": act.at for act in world.plan.acts}
    found: Waits = {}
    for said in checkers.ledger.said.values():
        one = said.delivery
        asked = checkers.ledger.messages.get(one.correlation_id)
        if asked is None or not is_answer(one) or agents[one.agent].model == HUNG:
            continue
        name = asked.inbound.platform_id
        if name in wrote:
            shown = checkers.showings[one.id][0].at
            found.setdefault((name, one.agent), shown - wrote[name])
    return found


def is_answer(delivery: Delivery) -> bool:
    """Whether this is what an agent has to say."""
    return delivery.kind == "reply" and bool(delivery.agent) and not delivery.trouble


def with_hang(seed: int, parts: Parts | None = None) -> Outcome:
    """Play a seed without and with a model that hangs, and judge I8."""
    _, calm = play(seed, frozenset(), parts)
    outcome, waits = play(seed, frozenset({"model_hang"}), parts)
    found = list(outcome.violations)
    lost = [f"{name} by {agent}" for name, agent in calm if (name, agent) not in waits]
    if lost:
        found.append(Violation("I8", f"not answered beside the hang: {lost[:3]}"))
    before, after = slow(calm), slow(waits)
    if after > MOST * before:
        text = f"beside the hang people wait {after:.2f} s, without {before:.2f} s"
        found.append(Violation("I8", text))
    return msgspec.structs.replace(outcome, violations=tuple(found))


def slow(waits: Waits) -> float:
    """Give the seconds that all but the slowest hundredth wait no longer than."""
    ordered = sorted(waits.values())
    return ordered[int(SHARE * (len(ordered) - 1))] if ordered else 0.0
