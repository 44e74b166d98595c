"""Types of values that several settings share."""

from typing import Annotated

from msgspec import Meta

Name = Annotated[
    str,
    Meta(
        pattern="^[a-z][a-z0-9_-]{0,31}$",
        description="a small letter, then up to 31 small letters, digits, - or _",
    ),
]
"""Name of an agent, model or connector in the settings."""


AgentName = Annotated[
    str,
    Meta(
        pattern="^[a-z][a-z0-9_-]{0,31}$",
        description="a small letter, then up to 31 small letters, digits, - or _; what"
        ' people see, such as "Eliza", is its display_name',
    ),
]
"""Name of an agent in the settings."""


Seconds = Annotated[float, Meta(gt=0, le=86_400)]

Pace = Annotated[float, Meta(ge=0, le=600)]
"""Seconds between two messages; 0: none."""


Count = Annotated[int, Meta(ge=1)]
