"""A company whose conductor may make agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from actors.agents.hired import HiringTerms
from actors.agents.persona import Persona
from actors.agents.roster import HiringParts
from actors.config.agents import AgentConfig, HiringConfig
from actors.messages.inbound import ModelRequest
from actors.services import Services
from actors.tree import Company
from tests.fakes.company.company import heard
from tests.fakes.company.desked import Desked
from tests.fakes.company.furnished import changed

BOSS = AgentConfig(is_conductor=True, description="leads the others")

CARL = """\
Done.
[CREATE_AGENT]
name: carl
description: counts things
prompt: You count.
[/CREATE_AGENT]"""


def saying(**answers: str) -> Callable[[ModelRequest], str]:
    """Have agents answer as told when they hear a word, else name who is asked.

    Args:
        answers: by a word of the last line, what is answered.
    """

    def talk(request: ModelRequest) -> str:
        words = heard(request)
        found = [answers[word] for word in answers if word in words.split()]
        if found and request.agent != "carl":
            return found[0]
        return f"{request.agent} heard {words}"

    return talk


@dataclass
class Hirers(Desked):
    """A cast with a conductor, `boss`, whom everybody may ask to make agents."""

    agents: dict[str, AgentConfig] = field(
        default_factory=lambda: {"boss": BOSS, "anna": AgentConfig()}
    )
    default_agent: str = "boss"
    hiring: HiringConfig = field(default_factory=lambda: HiringConfig(who="everyone"))
    defaults: AgentConfig = field(default_factory=AgentConfig)
    redact: Callable[[str], str] = str
    models: frozenset[str] = frozenset({"scripted", "large"})

    @property
    def services(self) -> Services:
        return changed(super().services, redact=self.redact)

    def company(self) -> Company:
        terms = HiringTerms(
            hiring=self.hiring,
            defaults=self.defaults,
            settled={name: each.model for name, each in self.agents.items()},
            models=self.models,
            tools=frozenset(tool.spec.name for tool in self.tools),
        )
        return replace(super().company(), hiring=HiringParts(terms, self.new_persona))

    def new_persona(self, name: str, config: AgentConfig) -> Persona:
        tools = {t.spec.name: t for t in self.tools if t.spec.name in config.tools}
        return Persona(name, config, tools=tools)
