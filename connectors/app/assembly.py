"""What the domain is told of the settings: limits, accounts, who works here.

Made at the start and again whenever settings change, by the same functions.

Reads what the runtime says in other languages: `config/locale/<language>/`.

Plain gettext catalogues (`LC_MESSAGES/callboard.po`), so that whoever translates has
their usual tools; read as they are, without a step in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec

from actors.agents.persona import Persona
from actors.agents.roster import ConfiguredStaff
from actors.memory import notes as noting
from actors.messages.state import RetryPolicy
from actors.people.access import policy
from actors.rules.groups.access import agent_access
from actors.rules.groups.routes import binding_of, group_of, routing_table
from actors.rules.text.translations import SOURCE, Voices
from actors.services import Furnishing
from actors.transport import Account, Transport
from connectors.app.kit import Kit
from connectors.app.webhooks import announcer_of
from connectors.chat.platforms import setting_of
from connectors.config.app import AppConfig
from connectors.config.checks import find_zone
from connectors.config.shipped import shipped_settings
from connectors.files.notebook import make_notebook
from connectors.files.personas import Personas
from connectors.settings.checks.access import (
    access_of,
    approvers,
    configured_persona,
    hiring_of,
    owners,
)
from connectors.settings.checks.schedule import standing_of
from runtime.telemetry.logs import EventLog

LOG = EventLog("languages")

LOCALE = "locale"
CATALOGUE = "LC_MESSAGES/callboard.po"


def load_voices(default: str = SOURCE, folder: Path | None = None) -> Voices:
    """Find all catalogues there are.

    Args:
        default: what is spoken with those whose language is not known.
        folder: where they lie; None: those that come with the program.
    """
    folder = folder or shipped_settings() / LOCALE
    found = {
        path.parent.parent.name: TranslationFile(path)
        for path in sorted(folder.glob(f"*/{CATALOGUE}"))
    }
    return Voices(found, default)


class TranslationFile(Mapping[str, str]):
    """The translations of one language, by the English text.

    The file is read when somebody first speaks the language: it takes 10 ms and 250 KB,
    and most companies speak one or two languages. If it cannot be read by then, as
    after an upgrade, English is spoken.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        try:
            stat = self._path.stat()
            return parse_catalogue(self._path, stat.st_mtime_ns, stat.st_size)
        except (OSError, ValueError) as error:
            LOG.warning("no translations", file=str(self._path), why=str(error))
            return {}

    def __getitem__(self, text: str) -> str:
        """Return the translation of a text."""
        return self._texts[text]

    def __iter__(self) -> Iterator[str]:
        """Name the texts that are translated."""
        return iter(self._texts)

    def __len__(self) -> int:
        """Count them."""
        return len(self._texts)


@lru_cache(maxsize=16)
def parse_catalogue(path: Path, _changed: int, _size: int) -> Mapping[str, str]:
    """Read a catalogue unless it is as it was; what is in doubt counts as missing."""
    # Why here: nobody needs it who speaks English.
    import polib  # noqa: PLC0415

    entries = polib.pofile(str(path), encoding="utf-8")
    return {
        entry.msgid: entry.msgstr
        for entry in entries.translated_entries()
        if not entry.fuzzy
    }


def models_of(config: AppConfig) -> dict[str, str]:
    """Say which model each agent of the settings asks."""
    return {name: agent.model for name, agent in config.agents.items()}


def furnished(
    before: Furnishing | None,
    config: AppConfig,
    kit: Kit,
    transports: Mapping[str, Transport],
) -> Furnishing:
    """Say what these settings come to for the domain."""
    lessons = None if kit.further is None else kit.further.lessons
    language = config.people.language
    is_same = before is not None and before.people.language == language
    voices = before.voices if before and is_same else load_voices(language)
    return Furnishing(
        limits=config.limits,
        sessions=config.sessions,
        compaction=config.compaction,
        buffering=config.buffering,
        busy_policies=config.busy_policies,
        watchdog=config.watchdog,
        zone=find_zone(config.sessions.time_zone) or UTC,  # checked before
        audit=config.audit,
        accounts=accounts_of(config, transports),
        owners=owners(config),
        approvers=approvers(config),
        agent_access=agent_access(config.access, approvers(config)),
        tool_calls=config.tool_calls,
        approvals=config.approvals,
        collaboration=config.collaboration,
        presence=config.presence,
        permissions=config.permissions,
        scheduler=config.scheduler,
        standing=standing_of(config),
        enclosures=kit.enclosures,
        media=kit.media,
        notebook=make_notebook(config, lessons),
        people=config.people,
        commands=config.commands,
        agent_models=models_of(config),
        agent_groups={
            name: group_of(each.groups, each.description, name, each.display_name)
            for name, each in config.agents.items()
        },
        voices=voices,
        memory=kit.memory,
        announcer=announcer_of(config),
        remember=noting.remember if config.memory.enabled else None,
    )


def accounts_of(
    config: AppConfig, transports: Mapping[str, Transport]
) -> dict[str, Account]:
    """Say what the domain must know of each connector."""
    accounts: dict[str, Account] = {}
    for name, transport in transports.items():
        settings = config.connectors.get(name)
        retries = RetryPolicy(
            **msgspec.structs.asdict(config.retries),
            retries_failures=setting_of(settings, "retry_failures", default=True),
        )
        access = None if settings is None else access_of(settings)
        accounts[name] = Account(
            transport.abilities,
            retries,
            setting_of(settings, "on_unknown", "resend"),
            None if access is None else policy(access, owners(config)),
            transport.presence is not None,
        )
    return accounts


def settled(config: AppConfig, kit: Kit, personas: Personas) -> ConfiguredStaff:
    """Say who works here by the settings, and who is routed to whom."""
    return ConfiguredStaff(
        tuple(persona_of(name, config, kit, personas) for name in config.agents),
        routing_table(
            config.agents, map(binding_of, config.routes), config.default_agent
        ),
        hiring_of(config, kit.tools),
    )


def persona_of(name: str, config: AppConfig, kit: Kit, personas: Personas) -> Persona:
    """Look up all that an agent of the settings works with."""
    return replace(
        configured_persona(config, kit.tools, name),
        read_files=personas.reading(name),
        sources=() if kit.further is None else kit.further.sources,
        skills=() if kit.further is None else kit.further.skills[name],
    )


def persona_folders(config: AppConfig) -> dict[str, Path]:
    """Say which agents have a folder of their own."""
    return {
        name: agent.persona
        for name, agent in config.agents.items()
        if agent.persona is not None
    }
