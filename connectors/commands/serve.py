"""`callboard serve`: run all connectors until told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import trio

from connectors.app import App, open_app, serving
from connectors.commands import config_option
from connectors.commands.running import (
    calm_collector,
    loaded,
    private_files,
    redacting,
    wait_any,
    wait_told_to_end,
)
from connectors.web.openai_api import HttpTransport

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.config import AppConfig
    from runtime.config import Settings


@click.command()
@config_option
def command(config: Path | None) -> None:
    """Run all connectors until stopped with Ctrl-C or SIGTERM.

    Prints one line for each address it listens on, when it does.
    """
    with loaded(config, "") as settings:
        if not serving(settings.value):
            raise click.UsageError(
                "there is nothing to serve: the settings have no connector but the"
                ' terminal. Add one, for example [connectors.http] kind = "http"'
            )
        trio.run(_serve, settings)


async def _serve(settings: Settings[AppConfig]) -> None:
    is_told = trio.Event()

    async def watch(task_status: trio.TaskStatus[None]) -> None:
        await wait_told_to_end(task_status)
        is_told.set()

    # Why before the start: Ctrl-C would else raise an exception anywhere in it. Told
    # to end meanwhile, it starts and then ends in order; a second signal is at once.
    try:
        async with trio.open_nursery() as watching:
            await watching.start(watch)
            await _run(settings, is_told)
            watching.cancel_scope.cancel()
    except ExceptionGroup as failures:  # the nursery's; what failed is in it
        raise failures.exceptions[0] from failures


async def _run(settings: Settings[AppConfig], is_told: trio.Event) -> None:
    config, redact = settings.value, redacting(settings).clean
    async with (
        open_app(config, serving(config), redact, private_files(settings)) as app,
        trio.open_nursery() as nursery,
    ):
        calm_collector()
        nursery.start_soon(_announce, app)
        await wait_any(app.system.wait_ended, is_told.wait)
        await app.drain(config.limits.drain_timeout)
        nursery.cancel_scope.cancel()


async def _announce(app: App) -> None:
    """Say where clients can connect, once they can."""
    for name, transport in app.transports.items():
        if isinstance(transport, HttpTransport):
            host, port = await transport.wait_listening()
            place = f"[{host}]" if ":" in host else host
            click.echo(f"{name}: listening on http://{place}:{port}")
