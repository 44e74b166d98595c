"""A company whose commands, people and languages a test may set."""

from __future__ import annotations

from dataclasses import dataclass, field

from actors.config.access import CommandsConfig, PeopleConfig
from actors.people.lookup import Acquaintances
from actors.rules.text.translations import Voices
from actors.services import Services
from tests.fakes.company.company import Cast
from tests.fakes.company.furnished import changed


@dataclass
class Desked(Cast):
    """A cast with all that commands are about."""

    commands: CommandsConfig = field(default_factory=CommandsConfig)
    people: PeopleConfig = field(default_factory=PeopleConfig)
    voices: Voices = field(default_factory=Voices)
    acquaintances: Acquaintances = field(default_factory=Acquaintances)

    @property
    def services(self) -> Services:
        return changed(
            super().services,
            commands=self.commands,
            people=self.people,
            voices=self.voices,
            acquaintances=self.acquaintances,
        )

    def restart(self) -> None:
        super().restart()
        self.acquaintances = Acquaintances()
