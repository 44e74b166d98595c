"""What a part of the page is: a view; and what views are given.

How another view is added:

1. A module of this package with a `View` in it, named `VIEW`:

       async def load(asked: Asked) -> Shown:
           return {"rows": [...]}          # what the template reads

       async def retry(asked: Asked) -> str:
           ...                             # asked.form["id"] names the row
           return "It is tried again."     # told above the view, once

       VIEW = View("queue", "Queue", load, every=2.0, actions={"retry": retry})

2. `templates/<name>.html`, which begins with `{% extends "base.html" %}` and fills two
   blocks: `main`, the whole of it, and in there `live`, what changes:

       {% extends "base.html" %}
       {% block main %}
       <h1>{{ view.title }}</h1>
       <div data-live="{{ here }}">{% block live %}…{% endblock %}</div>
       {% endblock %}

   While somebody looks, `load` is asked every `every` seconds, and what `live` comes to
   is sent if it has changed; the script puts it in place without moving the focus or
   closing what is open, for which what can be opened or focused has an `id`. Without
   a script the page shows what was so when it was asked for.

3. Its module's name in `shelf.py`, which is the order of the navigation.

`load` and actions run in the kernel, in a trio task of their own, for no longer than
`LONGEST` seconds; they must not block (read the database in a thread). All that a
template is given is escaped, whatever it says; it has no scripts or styles of its own
(the policy forbids them): classes are in `static/page.css`.

An action is a form that is posted to `/<view>/<action>`, with `{{ csrf }}` in it;
`data-confirm="…"` on the form asks before:

    <form method="post" action="/queue/retry">{{ csrf }}
      <input type="hidden" name="id" value="{{ row.id }}"><button>Retry</button></form>

What cannot be done is a `Refusal`: its text is told above the view. Templates have the
filters of `words.py`: `when` (Unix seconds), `lasting` (seconds as "2 h 5 min"),
`number` (1,234).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from connectors.office.pace import Pace
from connectors.show import Way

if TYPE_CHECKING:
    from actors.services import Services
    from connectors.config import AppConfig
    from connectors.show import Origins
    from runtime.metrics import Metrics
    from runtime.system import ActorSystem

LONGEST = 20.0
"""Seconds that a view's function may take; then the page says that it took too long."""

# Chosen: what reads one database, and makes plain values of it, gains little by more.
MOST_LOOKS = 4
"""Looks that read at once; others wait, within their time."""


async def ready() -> tuple[str, ...]:
    """Say that there is nothing that messages wait for."""
    await trio.lowlevel.checkpoint()
    return ()


@dataclass(frozen=True)
class Inside:
    """What views look at; on the kernel's side only."""

    system: ActorSystem
    services: Services
    """Store, clock, ids, limits: what actors have."""

    metrics: Metrics
    config: Callable[[], AppConfig]
    """The settings in force; masked by `connectors.show.effective`."""

    readiness: Callable[[], Awaitable[tuple[str, ...]]] = ready
    """Says why messages cannot be answered now."""

    origins: Callable[[], Origins] = dict[Way, object]
    """Says where the settings were written."""

    pace: Pace = field(default_factory=Pace)
    """How fast messages come in; looked at in the kernel's tasks alone."""

    threads: trio.CapacityLimiter = field(
        default_factory=lambda: trio.CapacityLimiter(MOST_LOOKS)
    )
    """In which views read. Of their own: a look that took too long goes on in its
    thread, and tools and files need threads, too."""


@dataclass(frozen=True)
class Asked:
    """One look at a view, or one action; by somebody who is logged in."""

    person: str
    """Who asks, as `people` in the settings has it."""

    inside: Inside
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the address says behind `?`; of equal names, the last."""

    form: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was posted, in an action; likewise."""


Shown = Mapping[str, object]
"""What a template is given, by the names it uses."""

Load = Callable[[Asked], Awaitable[Shown]]
Act = Callable[[Asked], Awaitable[str]]


class Refusal(Exception):  # noqa: N818  nothing is wrong: it is an answer
    """An action, or a look, that cannot be; its text says why and what to do."""


@dataclass(frozen=True)
class View:
    """One part of the page, at `/<name>`."""

    name: str
    title: str
    """In the navigation, and in the head of the browser's window."""

    load: Load
    every: float = 0.0
    """Seconds between looks while somebody has it open; 0: it never changes."""

    actions: Mapping[str, Act] = field(default_factory=dict[str, Act])
    """By the last part of the address they are posted to."""

    @property
    def template(self) -> str:
        """The file in `templates/`."""
        return f"{self.name}.html"
