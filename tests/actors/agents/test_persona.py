"""What is known of an agent before anybody asks it."""

from __future__ import annotations

from actors.agents.persona import Persona
from actors.config.agents import AgentConfig
from connectors.tools.calculate import CalculateTool


def test_what_it_can_do_is_named_once_and_skills_are_part_of_it() -> None:
    persona = Persona(
        name="anna",
        config=AgentConfig(tools=("calculate", "mcp:files/*")),
        tools={"calculate": CalculateTool()},
        skills=("invoices",),
    )
    assert persona.abilities == ("calculate", "mcp:files/*", "invoices")
