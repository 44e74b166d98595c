"""Takes changed settings over into a running company, on those concerned alone.

Watched, read, checked, compared: `rules.py` says who takes what over, and what
waits for a restart; `apply.py` does it. Settings with a mistake change nothing,
and the owners are told in their chats, once for each mistake, and when it is mended.

Files that settings name, and that are read into the company: who made what of them.

The settings' own files and those of secrets are not among them; neither are personas,
which are watched for themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import trio

from actors import names
from actors.journal.notices import EventType, Happened
from actors.people.owners import TellOwners
from connectors.admin.settings import AppliedFile
from connectors.app.reload.apply import TakingOver
from connectors.app.reload.rules import ReloadPlan, Step, make_plan
from connectors.config.app import AppConfig
from connectors.config.models import ScriptedModelConfig
from connectors.files.personas import LOOK_EVERY, Look, look_aside, wait_changed
from connectors.sandbox.plan import SandboxError
from connectors.settings.load import check
from runtime.actor.ref import UNANSWERED
from runtime.config.loader import Settings
from runtime.config.messages import dotted
from runtime.errors import KernelError, SettingsError
from runtime.telemetry.logs import EventLog, Redactor, Writing

if TYPE_CHECKING:
    from connectors.app.accounts import Serves
    from connectors.app.app import App


SKILL = "SKILL.md"

MODELS: tuple[Step, ...] = ("catalogue",)
SKILLS: tuple[Step, ...] = ("sources", "agents")

MOST_FOLDERS = 500
"""Skills in one folder that are watched."""


def files_beside(config: AppConfig) -> dict[Path, tuple[Step, ...]]:
    """Name these files, with who takes them over when they change; it blocks.

    A folder stands for what comes and goes in it.
    """
    found: dict[Path, tuple[Step, ...]] = {}
    if config.ledger.prices is not None:
        found[config.ledger.prices] = MODELS
    for model in config.models.values():
        if isinstance(model, ScriptedModelConfig):
            found[model.script] = MODELS
    if config.mcp_servers_file is not None:
        found[config.mcp_servers_file] = ()
    for folder in config.skills.folders:
        found[folder] = SKILLS
        for skill in skills_in(folder):
            found[skill] = found[skill / SKILL] = SKILLS
    return found


def skills_in(folder: Path) -> list[Path]:
    """List the folders in a folder; one that cannot be read has none."""
    try:
        inside = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []
    return inside[:MOST_FOLDERS]


LOG = EventLog("settings")

# Chosen: seconds until settings with a mistake are read again though they look the
# same: what they lack may lie in a file that they do not name.
READ_AGAIN = 10.0

Outcome = Literal["applied", "waiting", "unchanged", "refused"]
"""What became of a change: in use; all of it waits for a restart; nothing a program
would see; there is a mistake, and the last good settings stay."""

Load = Callable[[], Settings[AppConfig]]

REFUSED = (
    "⚠️ The settings have a mistake; until it is mended, the last good ones are used."
)
TAKEN_BACK = "(what was begun is taken back)"
MENDED = "✅ The settings are right again, and in use."
WAITING = "The settings have changed. This part of it waits for a restart:"


class SettingsSource(msgspec.Struct, frozen=True):
    """Where the settings of a company come from."""

    settings: Settings[AppConfig]
    """As they were at the start."""

    load: Load
    """Reads them anew; raises `SettingsError` if they are wrong."""

    redactor: Redactor
    """Learns new secrets before they are used."""

    writing: Writing | None = None
    """The log, if the settings say how it is written."""


@dataclass(frozen=True)
class Ways:
    """How a company is run by its settings."""

    serves: Serves | None = None
    """Says which connectors run by some settings; None: those of the start."""

    adapt: Callable[[AppConfig], AppConfig] = lambda config: config
    """Adds to settings what only the one who started the program knows."""


class Reloading:
    """The settings of a running company, and how they change."""

    def __init__(
        self,
        app: App,
        config: AppConfig,
        source: SettingsSource,
        ways: Ways | None = None,
    ) -> None:
        self._app = app
        self.config = config
        """What the company goes by."""

        app.origins, app.files = source.settings.origins, source.settings.files
        self._source = source
        self._ways = ways or Ways()
        self._taking_over = TakingOver(app, self._ways.serves, source.writing)
        self._one_by_one = trio.Lock()
        self._files = set(files_of(source.settings))
        self._private = set(self._files)
        self._beside: Look = {}
        self._mistake = ""
        self._is_told = False
        """Whether owners know of that mistake."""

        self._waiting: dict[str, str] = {}
        self._doubts = set(map(told, source.settings.warnings))
        database = Path(config.store.path)
        file = next(iter(source.settings.files), None)
        door = None if app.admin is None else app.admin.address
        key = app.company.services.receipt_key
        self._noted = AppliedFile(database, key, file, door, config.nodes.name)
        self._reloads = app.metrics.counter(
            "callboard_settings_reloads",
            "Changes of the settings while it ran, by what became of them.",
            ("outcome",),
        )

    async def run(
        self,
        every: float = LOOK_EVERY,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Take over each change; never returns.

        Args:
            every: seconds between two looks at the files.
            task_status: told when changes are seen (`Nursery.start`).
        """
        with self._noted:
            await self.look_beside()
            known: Look = await look_aside(self._watched)
            await self._note()
            task_status.started()
            while True:
                within = READ_AGAIN if self._mistake else math.inf
                known = await wait_changed(known, within=within, every=every)
                await self.reload()
                # Invariant: of a file known before, how it looked before it was read.
                watched = self._watched
                known = await look_aside(watched) | {
                    file: seen for file, seen in known.items() if file in watched
                }

    @property
    def _watched(self) -> set[Path]:
        return self._files | self._beside.keys()

    async def reload(self) -> Outcome | None:
        """Read the settings, and take over what can be.

        Returns:
            What came of it; None if the same mistake was told before.
        """
        async with self._one_by_one:
            outcome = await self._reload()
            await self._note()
        return outcome

    async def renew_connectors(self) -> None:
        """Start and end connectors: others than before are to run by the settings.

        Raises:
            SettingsError: an address cannot be listened on.
            KernelError: an actor does not answer.
        """
        async with self._one_by_one:
            steps: frozenset[Step] = frozenset({"connectors"})
            await self._taking_over.carry_out(self.config, steps, self._private)

    async def _reload(self) -> Outcome | None:
        try:
            settings = await trio.to_thread.run_sync(self._source.load)
            self._source.redactor.learn(each.reveal() for each in settings.secrets)
            outcome = await self._take_over(settings)
        except SettingsError as error:
            self._files |= problem_files(error.problems)
            return self._refuse("\n".join(map(told, error.problems)), is_theirs=True)
        except (KernelError, *UNANSWERED, OSError) as error:
            is_theirs = isinstance(error, OSError | SandboxError)
            mistake = str(error) or type(error).__name__
            return self._refuse(mistake, is_theirs=is_theirs)
        except Exception as error:  # noqa: BLE001  the company must not end with it
            mistake = f"a mistake in Callboard: {type(error).__name__}: {error}"
            if mistake != self._mistake:
                LOG.fault("please report this", error)
            return self._refuse(mistake, is_theirs=False)
        self._mended()
        self._files = set(files_of(settings))
        doubts = set(map(told, settings.warnings))
        for doubt in sorted(doubts - self._doubts):
            LOG.warning("doubtful setting", what=doubt)
        self._doubts = doubts
        self._reloads.add(1, outcome)
        return outcome

    async def _take_over(self, settings: Settings[AppConfig]) -> Outcome:
        plan = make_plan(self.config, self._ways.adapt(settings.value))
        if plan.waiting:
            check_together(plan.target)
        self._private.update(files_of(settings))
        seen, changed = await self._changed_beside(plan.target)
        steps = plan.steps.union(*changed.values())
        taken_back = (TAKEN_BACK,) if self._taking_over.is_begun else ()
        if plan.applied or steps or self._taking_over.owed:
            await self._taking_over.carry_out(plan.target, steps, self._private)
        self.config, self._beside = plan.target, seen
        self._app.origins, self._app.files = settings.origins, settings.files
        return self._told_of(plan, changed, () if plan.applied else taken_back)

    def _told_of(
        self, plan: ReloadPlan, changed: Iterable[Path], taken_back: tuple[str, ...]
    ) -> Outcome:
        """Say in the log, and to owners, what became of a change."""
        files = sorted({each.name for each in changed})
        applied = (*plan.applied, *files, *taken_back)
        if plan.waiting and plan.waiting != self._waiting:
            rows = (f"{name}: {why}" for name, why in plan.waiting.items())
            self._tell_owners("\n".join((WAITING, *rows)))
        self._waiting = plan.waiting
        say = LOG.warning if plan.waiting else LOG.info
        say(
            "settings read again",
            applied=", ".join(applied) or "nothing",
            waiting_for_a_restart=", ".join(plan.waiting) or "nothing",
        )
        if applied:
            self._tell(
                "settings.applied",
                applied=tuple(applied),
                waiting_for_a_restart=tuple(plan.waiting),
            )
            return "applied"
        return "waiting" if plan.waiting else "unchanged"

    # --- files that settings name -----------------------------------------------------

    async def look_beside(self) -> None:
        """See how files look that settings name: what differs later has changed."""
        self._beside, _ = await self._changed_beside(self.config)

    async def _changed_beside(
        self, config: AppConfig
    ) -> tuple[Look, dict[Path, tuple[Step, ...]]]:
        """Look at the files that settings name.

        Returns:
            How they look, and those that have changed, with who takes them over.
        """
        steps = await trio.to_thread.run_sync(files_beside, config)
        seen = await look_aside(steps)
        known = self._beside
        return seen, {
            file: steps[file]
            for file, look in seen.items()
            if steps[file] and file in known and known[file] != look
        }

    # --- mistakes ---------------------------------------------------------------------

    def _refuse(self, mistake: str, *, is_theirs: bool) -> Outcome | None:
        """Keep the last good settings; owners are told of what they can mend."""
        if mistake == self._mistake:
            return None
        self._mistake = mistake
        self._reloads.add(1, "refused")
        LOG.warning("settings not taken over; the last good ones stay", why=mistake)
        self._tell("settings.refused", why=mistake)
        if is_theirs:
            self._is_told = True
            self._tell_owners(f"{REFUSED}\n{mistake}")
        return "refused"

    def _mended(self) -> None:
        if self._mistake and self._is_told:
            LOG.info("settings are right again")
            self._tell_owners(MENDED)
        self._mistake, self._is_told = "", False

    def _tell(self, what: EventType, **data: str | tuple[str, ...]) -> None:
        """Tell other programs, as far as they are to be told."""
        if self._app.announcing is not None and self._tells:
            self._app.announcing.tell(Happened(what, dict(data)))

    def _tell_owners(self, text: str) -> None:
        owners = self._app.system.find(names.OWNERS)
        if owners is not None and self._tells:
            owners.tell(TellOwners(text))

    @property
    def _tells(self) -> bool:
        """Whether this process tells people: of several nodes, one does."""
        return self._app.company.services.duties.has_rest

    async def _note(self) -> None:
        """Write down what is in use, for `callboard config diff`."""
        told_of = self._waiting, self._mistake
        at = self._app.clock.wall()
        await trio.to_thread.run_sync(self._noted.write, self.config, at, told_of)


def files_of(settings: Settings[AppConfig]) -> tuple[Path, ...]:
    """Name all files that the settings were read from."""
    return (*settings.files, *settings.secret_files)


def check_together(config: AppConfig) -> None:
    """Check what is new against what waits for a restart.

    Raises:
        SettingsError: they do not go together without one.
    """
    complaints = [each for each in check(config) if not each.is_warning]
    if complaints:
        raise SettingsError(
            "; ".join(f"{dotted(each.way)}: {each.text}" for each in complaints),
            hint="something it needs waits for a restart",
        )


def told(problem: SettingsError) -> str:
    """Say one mistake in a line: where, what, and what to do."""
    return f"{problem} ({problem.hint})" if problem.hint else str(problem)


def problem_files(problems: Iterable[SettingsError]) -> set[Path]:
    """Name the files in which something is wrong."""
    return {Path(each.file) for each in problems if each.file}
