"""Takes changed settings over into a running company, as far as that goes.

Models, accounts, ledger and budgets are replaced; what else has changed waits for a
restart, and the log says so. Settings with a mistake change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import trio

from actors import names
from actors.calls import ReplaceCatalogue
from actors.notices import Happened
from connectors.config import AppConfig
from connectors.file_watch import LOOK_EVERY, look, look_aside, wait_changed
from connectors.offers import accounts
from connectors.settings import check
from runtime.config import Settings
from runtime.config_words import dotted
from runtime.errors import KernelError, SettingsError
from runtime.logs import EventLog, Redactor
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.notices import EventType
    from connectors.app import App
    from connectors.file_watch import Look

LOG = EventLog("settings")

LIVE = ("models", "accounts", "ledger", "budgets")
"""The top-level settings that take effect without a restart."""

# Chosen: seconds until settings with a mistake are read again though they look the
# same: what they lack may lie in a file that they do not name.
READ_AGAIN = 10.0

# Chosen: the accounts answer at once, but may have to add up a long ledger.
TAKEN_OVER_WITHIN = 60.0

Outcome = Literal["applied", "waiting", "unchanged", "refused"]
"""What became of a change: in use; all of it waits for a restart; nothing a program
would see; there is a mistake, and the last good settings stay."""

Load = Callable[[], Settings[AppConfig]]


class Source(msgspec.Struct, frozen=True):
    """Where the settings of a company come from."""

    settings: Settings[AppConfig]
    """As they were at the start."""

    load: Load
    """Reads them anew; raises `SettingsError` if they are wrong."""

    redactor: Redactor
    """Learns new secrets before they are used."""


class Reloading:
    """The settings of a running company, and how they change.

    Args:
        app: the company.
        config: what it was started with.
        source: where its settings come from.
    """

    def __init__(self, app: App, config: AppConfig, source: Source) -> None:
        self._app = app
        self._config = config
        self._source = source
        self._started_with = source.settings.value
        self._files = set(files_of(source.settings))
        self._private = set(self._files)
        self._mistake = ""
        self._doubts = set(map(told, source.settings.warnings))
        self._reloads = app.metrics.counter(
            "callboard_settings_reloads",
            "Changes of the settings while it ran, by what became of them.",
            ("outcome",),
        )

    async def run(self, every: float = LOOK_EVERY) -> None:
        """Take over each change; never returns.

        Args:
            every: seconds between two looks at the files.
        """
        known: Look = look(self._files)
        while True:
            within = READ_AGAIN if self._mistake else math.inf
            known = await wait_changed(known, within=within, every=every)
            await self.reload()
            # Invariant: of a file known before, how it looked before it was read.
            known = await look_aside(self._files) | {
                file: seen for file, seen in known.items() if file in self._files
            }

    async def reload(self) -> Outcome | None:
        """Read the settings, and take over what can be.

        Returns:
            What came of it; None if the same mistake was told before.
        """
        try:
            settings = await trio.to_thread.run_sync(self._source.load)
            self._source.redactor.learn(each.reveal() for each in settings.secrets)
            outcome = await self._take_over(settings)
        except SettingsError as error:
            self._files |= problem_files(error.problems)
            return self._refuse("\n".join(map(told, error.problems)))
        except (KernelError, *UNANSWERED, OSError) as error:
            return self._refuse(str(error) or type(error).__name__)
        self._mistake = ""
        self._files = set(files_of(settings))
        doubts = set(map(told, settings.warnings))
        for doubt in sorted(doubts - self._doubts):
            LOG.warning("doubtful setting", what=doubt)
        self._doubts = doubts
        self._reloads.add(1, outcome)
        return outcome

    async def _take_over(self, settings: Settings[AppConfig]) -> Outcome:
        new = settings.value
        waiting = [
            each for each in changed(self._started_with, new) if each not in LIVE
        ]
        live = {each: getattr(new, each) for each in LIVE}
        config = msgspec.structs.replace(self._config, **live)
        applied = changed(self._config, config)
        if applied:
            check_running(config)
            self._private.update(files_of(settings))
            await self._replace(config)
        if applied or waiting:
            say = LOG.warning if waiting else LOG.info
            say(
                "settings read again",
                applied=", ".join(applied) or "nothing",
                waiting_for_a_restart=", ".join(waiting) or "nothing",
            )
        if applied:
            told = {"applied": tuple(applied), "waiting_for_a_restart": tuple(waiting)}
            self._tell("settings.applied", **told)
            return "applied"
        return "waiting" if waiting else "unchanged"

    async def _replace(self, config: AppConfig) -> None:
        """Hand the accounts what can be asked now."""
        made = await self._app.stock.renew(config, self._private)
        before, after = accounts(self._config), accounts(config)
        renewed = frozenset(name for name in before if before[name] != after.get(name))
        models = self._app.system.find(names.MODELS)
        if models is None:
            raise KernelError("the models are being restarted; tried again soon")
        await models.ask(ReplaceCatalogue(made, renewed), timeout=TAKEN_OVER_WITHIN)
        self._app.stock.current = made
        self._config = config

    def _refuse(self, mistake: str) -> Outcome | None:
        if mistake == self._mistake:
            return None
        self._mistake = mistake
        self._reloads.add(1, "refused")
        LOG.warning("settings not taken over; the last good ones stay", why=mistake)
        self._tell("settings.refused", why=mistake)
        return "refused"

    def _tell(self, what: EventType, **data: str | tuple[str, ...]) -> None:
        """Tell other programs, as far as they are to be told."""
        if self._app.announcing is not None:
            self._app.announcing.tell(Happened(what, dict(data)))


def files_of(settings: Settings[AppConfig]) -> tuple[Path, ...]:
    """Name all files that the settings were read from."""
    return (*settings.files, *settings.secret_files)


def changed(before: AppConfig, after: AppConfig) -> list[str]:
    """Name the top-level settings that differ."""
    return [
        written
        for name, written in zip(
            AppConfig.__struct_fields__, AppConfig.__struct_encode_fields__, strict=True
        )
        if getattr(before, name) != getattr(after, name)
    ]


def check_running(config: AppConfig) -> None:
    """Check new models against agents that go on with their old settings.

    Raises:
        SettingsError: they do not go together without a restart.
    """
    complaints = [each for each in check(config) if not each.is_warning]
    if complaints:
        raise SettingsError(
            "; ".join(f"{dotted(each.way)}: {each.text}" for each in complaints),
            hint="agents change with a restart only",
        )


def told(problem: SettingsError) -> str:
    """Say one mistake in a line: where, what, and what to do."""
    return f"{problem} ({problem.hint})" if problem.hint else str(problem)


def problem_files(problems: Iterable[SettingsError]) -> set[Path]:
    """Name the files in which something is wrong."""
    return {Path(each.file) for each in problems if each.file}
