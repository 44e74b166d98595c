"""`callboard serve`: run all connectors until told to stop."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click
import trio

from connectors.app import App, open_app
from connectors.commands import config_option, let_go_of_output
from connectors.commands.running import (
    calm_collector,
    hearing_signals,
    loaded,
    private_files,
    wait_any,
)
from connectors.reloading import Reloading
from connectors.transports import serving
from connectors.web.openai_api import HttpTransport

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.reloading import Source


@click.command()
@config_option
def command(config: Path | None) -> None:
    """Run all connectors until stopped with Ctrl-C, SIGTERM or SIGHUP.

    Prints one line for each address it listens on, when it does.
    """
    with loaded(config, "") as source:
        if not serving(source.settings.value):
            raise click.UsageError(
                "there is nothing to serve: the settings have no connector but the"
                ' terminal. Add one, for example [connectors.http] kind = "http"'
            )
        trio.run(_serve, source)


async def _serve(source: Source) -> None:
    await hearing_signals(partial(_run, source))


async def _run(source: Source, is_told: trio.Event) -> None:
    config, redact = source.settings.value, source.redactor.clean
    private = private_files(source.settings)
    async with (
        open_app(config, serving(config), redact, private) as app,
        trio.open_nursery() as nursery,
    ):
        calm_collector()
        nursery.start_soon(_announce, app)
        nursery.start_soon(Reloading(app, config, source).run)
        nursery.start_soon(app.personas.run, app.system.find)
        await wait_any(app.system.wait_ended, is_told.wait)
        await app.drain(config.limits.drain_timeout)
        nursery.cancel_scope.cancel()


async def _announce(app: App) -> None:
    """Say where clients can connect, once they can."""
    for name, transport in app.transports.items():
        if isinstance(transport, HttpTransport):
            host, port = await transport.wait_listening()
            place = f"[{host}]" if ":" in host else host
            tell_address(f"{name}: listening on http://{place}:{port}")


def tell_address(line: str) -> None:
    """Write to standard output where clients can connect.

    Raises:
        click.ClickException: it cannot be written, so nobody would know.
    """
    try:
        click.echo(line)
    except OSError as error:
        let_go_of_output()
        raise click.ClickException(
            f"standard output cannot be written: {error.strerror}; direct it to a file"
            " or /dev/null that can"
        ) from error
