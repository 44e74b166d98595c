"""The actors of hooks: who starts whom, and how each hook's code is run.

callboard/hooks/own
└── <hook>              its two actors; its code is started again when it ends
    ├── hook
    └── runner
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trio

from actors.hooks.book import HookBook
from actors.hooks.chain import HookSpec
from connectors.config.hooks import HookConfig
from connectors.hooks.hook import Hook, HookFigures, QuestionQueue, Settings
from connectors.hooks.runner import Connect, HookConnection, HookRunner, loaded, started
from connectors.sandbox.orders import command_files
from connectors.sandbox.plan import LONG_RUNNING, MIB, Confinement, SandboxLimits
from connectors.sandbox.runner import Sandbox
from runtime.clock import Clock
from runtime.store.port import Store
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import Supervisor, endless
from runtime.telemetry.metrics import Metrics

HOMES = ".hooks"
"""In the agents' workspace; there each program has a folder of its own, unless its
settings name one. No agent is called so."""

ALWAYS = 10_000_000.0
"""Seconds of processor time: it lives as long as we do."""


@dataclass(frozen=True)
class HookSurroundings:
    """What hooks are run with."""

    sandbox: Sandbox
    workspace: Path
    figures: HookFigures
    store: Store
    clock: Clock


def in_order(hooks: Mapping[str, HookConfig]) -> list[tuple[str, HookConfig]]:
    """Give the hooks that are used, in the order in which they are asked."""
    used = [(name, each) for name, each in hooks.items() if not each.disabled]
    return sorted(used, key=lambda item: (item[1].order, item[0]))


def book_of(hooks: Mapping[str, HookConfig]) -> HookBook:
    """Say who is asked about what."""
    return HookBook(tuple(spec_of(name, each) for name, each in in_order(hooks)))


def spec_of(name: str, config: HookConfig) -> HookSpec:
    """Say when one hook is asked."""
    return HookSpec(
        name=name,
        events=config.events,
        connectors=config.connectors,
        agents=config.agents,
        timeout=config.timeout,
        is_closed=config.on_failure == "closed",
    )


def branches(
    hooks: Mapping[str, HookConfig],
    sandbox: Sandbox,
    workspace: Path,
    metrics: Metrics,
    store: Store,
    clock: Clock,
) -> tuple[ChildSpec, ...]:
    """Say how the actors of all hooks are started; as `Hooking.branches`."""
    ground = HookSurroundings(sandbox, workspace, HookFigures(metrics), store, clock)
    return hook_specs(hooks, ground)


def hook_specs(
    hooks: Mapping[str, HookConfig], ground: HookSurroundings
) -> tuple[ChildSpec, ...]:
    """Say how the actors of all hooks are started."""
    return tuple(
        branch(
            name, each, connecting(name, each, ground.sandbox, ground.workspace), ground
        )
        for name, each in in_order(hooks)
    )


def branch(
    name: str, config: HookConfig, connect: Connect, ground: HookSurroundings
) -> ChildSpec:
    """Say how the actors of one hook are started."""
    settings = Settings(name, config.timeout)

    def start() -> Supervisor:
        link = QuestionQueue(config.max_calls)

        def hook() -> Hook:
            return Hook(settings, link, ground.figures, ground.store, ground.clock)

        def runner() -> HookRunner:
            return HookRunner(settings, connect, link, ground.figures)

        children = (
            ChildSpec(name="hook", start=hook),
            ChildSpec(name="runner", start=runner, shutdown=5.0),
        )
        return Supervisor(children, endless(config.restart_first))

    return ChildSpec(name=name, start=start, shutdown=8.0)


def connecting(
    name: str, config: HookConfig, sandbox: Sandbox, workspace: Path
) -> Connect:
    """Say how a hook's code is run."""
    if config.python:
        return partial(loaded, config.python, config.max_calls)
    return partial(running, name, config, sandbox, workspace)


@asynccontextmanager
async def running(
    name: str, config: HookConfig, sandbox: Sandbox, workspace: Path
) -> AsyncGenerator[HookConnection]:
    """Run a hook's program, confined, with none of our secrets.

    Raises:
        connectors.hooks.hook.HookError: it cannot be started.
    """
    own = workspace / HOMES / name
    home = Path(await trio.Path(config.folder or own).absolute())
    if config.folder is None:
        await trio.Path(home).mkdir(parents=True, exist_ok=True)
    opened = sandbox.open_process(
        config.command,
        confinement=confinement_of(config, home),
        cwd=home,
        env={key: text.reveal() for key, text in config.env.items()},
    )
    async with started(name, opened) as connection:
        yield connection


def confinement_of(config: HookConfig, home: Path) -> Confinement:
    """Say what a hook's program may do."""
    readable = tuple(map(Path.absolute, config.readable))
    writable = tuple(map(Path.absolute, config.writable))
    is_own = config.folder is None
    program, *rest = config.command
    named = command_files(program, rest, home)
    return Confinement(
        readable=(*readable, *named) if is_own else (*readable, *named, home),
        writable=(*writable, home) if is_own else writable,
        network=config.network,
        limits=SandboxLimits(
            memory=config.memory_mb * MIB, addresses=LONG_RUNNING.memory, cpu=ALWAYS
        ),
    )
