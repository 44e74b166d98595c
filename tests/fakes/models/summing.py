"""A model that also sums up, and a memory that only keeps a list."""

from __future__ import annotations

from collections.abc import Callable

from actors.journal.history import KINDS, Chapter, read_chapter
from actors.messages.inbound import ModelRequest
from actors.ports import Noted
from actors.rules.prompt import compaction
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.store.facts import FactChange, FactListing, SaveFact
from tests.fakes.company.company import Cast, FakeModel, Says, at_rest, heard

FACT = "[MEMORY:sticky] zoe is allergic to nuts [/MEMORY]"


def task_of(request: ModelRequest) -> str:
    """Tell what a request is for: `talk`, `facts` or `summary`."""
    tasks = {compaction.FACTS: "facts", compaction.SUMMARY: "summary"}
    return tasks.get(request.system, "talk")


def answering(request: ModelRequest) -> str:
    """Answer so that one sees to what."""
    return f"to {heard(request)[:20]}"


class Summer(FakeModel):
    """Echoes people, and answers whoever wants facts or a summary.

    Args:
        facts: what it says when it is asked for facts.
        summary: what it says when it is asked for a summary.
        talk: what it says to people.
    """

    def __init__(
        self,
        facts: str | Says = FACT,
        summary: str | Says = "They spoke of nuts.",
        talk: Callable[[ModelRequest], str | Says] | None = None,
    ) -> None:
        self.said: dict[str, str | Says] = {"facts": facts, "summary": summary}
        self.own: Callable[[ModelRequest], str | Says] = talk or answering
        super().__init__(self._say)

    def _say(self, request: ModelRequest) -> str | Says:
        task = task_of(request)
        return self.own(request) if task == "talk" else self.said[task]

    def asked(self, task: str) -> list[ModelRequest]:
        """Give the requests for one task."""
        return [each for each in self.requests if task_of(each) == task]


class Notebook:
    """Remembers by rows that are stored with what they are about."""

    def __init__(self) -> None:
        self.noted: list[Noted] = []

    async def __call__(
        self, services: Services, asker: Actor, noted: Noted
    ) -> tuple[FactChange, ...]:
        del services, asker
        self.noted.append(noted)
        name = f"fact{len(self.noted)}"
        fact = SaveFact(
            id=name,
            agent=noted.agent,
            scope="here",
            part=0,
            kind="fact",
            text=noted.text,
        )
        return (fact,)


async def kept(cast: Cast) -> list[str]:
    """Give what the notebook's rows say, the newest first."""
    listing = FactListing(agent="anna", scopes=("here",), now=0.0)
    return [fact.text for fact in await cast.store.facts.listed(listing)]


async def talk(cast: Cast, *words: str) -> None:
    """Write one message after the other, each after the answer to the one before."""
    for word in words:
        cast.platform.write(word)
        await at_rest(cast)


async def chapters(cast: Cast, stream: str = "anna/fake/room//zoe") -> list[Chapter]:
    """Give what the journal tells of a conversation beside its exchanges."""
    found: list[Chapter] = []
    for event in await cast.store.read(stream):
        if event.kind in KINDS:
            chapter = read_chapter(event.kind, event.body)
            assert chapter is not None
            found.append(chapter)
    return found
