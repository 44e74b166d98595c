"""A company in which an agent goes on by itself, every hour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from actors.config.agents import AgentConfig, AutonomousConfig
from actors.messages.inbound import Address, ModelRequest
from actors.schedule.appointments import Appointment, name_of
from actors.services import Services
from connectors.config.checks import find_zone
from tests.fakes.company.company import FakeModel, Says
from tests.fakes.company.furnished import changed
from tests.fakes.company.minded import Minded
from tests.fakes.memory.memory import FakeLogBook

HOURLY = AutonomousConfig(repeat="every 1h", report_to="fake/ops", goal="the roses")
IDLE = '{"should_act": false, "reasoning": "all is well", "plan": []}'
NAME = name_of("autonomous", "anna")


def acts(*plan: str) -> str:
    """Give a decision to act."""
    told = {"should_act": True, "reasoning": "they are dry", "plan": plan}
    return msgspec.json.encode(told).decode()


def is_planner(request: ModelRequest) -> bool:
    """Whether a decision is asked for."""
    return any("(Decide now whether" in line.text for line in request.lines)


def planned(
    decide: Callable[[ModelRequest], str | Says] | str,
    work: Callable[[ModelRequest], str | Says] | str = "Watered.",
) -> FakeModel:
    """Make a model that decides and works as told."""

    def talk(request: ModelRequest) -> str | Says:
        says = decide if is_planner(request) else work
        return says if isinstance(says, str) else says(request)

    return FakeModel(talk)


@dataclass
class ByItself(Minded):
    """A cast whose anna has runs of her own."""

    autonomous: AutonomousConfig = HOURLY
    book: FakeLogBook = field(default_factory=FakeLogBook)
    wanted: dict[str, Appointment] = field(default_factory=dict[str, Appointment])
    """What the settings want kept; a test may change it while all run."""

    more: dict[str, Any] = field(default_factory=dict[str, Any])
    """Further settings of anna's."""

    def __post_init__(self) -> None:
        """Give anna her settings, and the memory its book."""
        super().__post_init__()
        self.kit = replace(self.kit, log_book=self.book)
        self.agents = {"anna": AgentConfig(autonomous=self.autonomous, **self.more)}

    @property
    def services(self) -> Services:
        """Give what actors share, with what the settings want kept."""
        self.wanted.clear()
        self.wanted.update(self.standing())
        return changed(super().services, standing=self.wanted, find_zone=find_zone)

    def standing(self) -> dict[str, Appointment]:
        """Give what the settings want kept."""
        own = self.autonomous
        if not own.repeat:
            return {}
        connector, _, chat = own.report_to.partition("/")
        it = Appointment(
            kind="autonomous",
            agent="anna",
            address=Address(connector, chat),
            sender_id=chat,
            text=own.goal,
            repeat=own.repeat,
            anchor=0.0,
            tokens=own.run_tokens,
        )
        return {NAME: it}

    def logged(self) -> list[str]:
        """Give what stands in the day's log."""
        return [text for _, _, text in self.book.entries]

    def asked(self, *, planner: bool) -> list[ModelRequest]:
        """Give what the planner, or the executor, was asked."""
        return [x for x in self.model.requests if is_planner(x) is planner]
