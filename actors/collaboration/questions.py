"""The arguments of the tools that ask colleagues, and their results; pure."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from actors.messages.inbound import DelegationChain, ToolSpec
from actors.rules.prompt import tools as tool_results
from actors.rules.prompt.tools import COLLABORATE, CONSULT

T = TypeVar("T", bound=msgspec.Struct)

LATE = "it did not answer in time"


class CollaborateArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `collaborate`."""

    agent: str
    message: str
    session_id: str = ""
    turns: Annotated[int, msgspec.Meta(ge=1, le=32)] = 1


class ConsultArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `consult`."""

    agents: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    message: str


def _schema(required: list[str], **properties: dict[str, object]) -> bytes:
    return msgspec.json.encode(
        {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
    )


MESSAGE: dict[str, object] = {
    "type": "string",
    "description": "all they need to know: they do not see this chat",
}

COLLABORATE_SPEC = ToolSpec(
    name=COLLABORATE,
    description=(
        "Ask a colleague something and get the answer; people do not see it. Give the"
        " session_id of an earlier answer to go on with it. With turns above 1 you go"
        " on asking until you have what you need, or the colleague has no more to say;"
        " you get the whole transcript."
    ),
    parameters=_schema(
        ["agent", "message"],
        agent={"type": "string", "description": "the colleague's name"},
        message=MESSAGE,
        session_id={"type": "string", "description": "leave out to begin anew"},
        turns={
            "type": "integer",
            "minimum": 1,
            "maximum": 32,
            "description": "most questions; 1 if left out",
        },
    ),
    # Asked with the same call again, a colleague gives the answer it gave before.
    is_repeatable=True,
    effect="read",
)

CONSULT_SPEC = ToolSpec(
    name=CONSULT,
    description=(
        "Ask several colleagues the same at once and get the answers that come in time;"
        " people do not see it."
    ),
    parameters=_schema(
        ["agents", "message"],
        agents={
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "description": "the colleagues' names",
        },
        message=MESSAGE,
    ),
    is_repeatable=True,
    effect="read",
)


class ConsultQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One question for one colleague."""

    source: str
    target: str
    text: str
    key: str
    """Tells it from all others that come of the message that is being answered."""

    session: str
    is_new: bool
    """Whether it may begin the consultation."""

    chain: DelegationChain
    """Who has asked whom, down to the one that is asked."""


class ColleagueAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """One colleague's answer, as the model reads it."""

    agent: str
    session_id: str = ""
    answer: str = ""
    missing: str = ""
    """Why there is none."""

    is_done: bool = False
    questions: int = 0


class ColleagueAnswers(msgspec.Struct, frozen=True):
    """Several colleagues' answers, as the model reads them."""

    answers: tuple[ColleagueAnswer, ...]

    @property
    def has_any(self) -> bool:
        """Whether one of them is an answer."""
        return any(not each.missing for each in self.answers)


class DialogueLine(msgspec.Struct, frozen=True):
    """One line of a dialogue."""

    agent: str
    text: str


class Discussion(msgspec.Struct, frozen=True):
    """A dialogue that an agent carried on by itself, as the model reads it."""

    agent: str
    session_id: str
    ended: str
    """`done`: one of the two had no more to say; `turns`: there were no more; else why
    it broke off."""

    transcript: tuple[DialogueLine, ...]
    questions: int


class Counted(msgspec.Struct, frozen=True):
    """How many questions an answer took."""

    questions: int = 0
    answers: tuple[ColleagueAnswer, ...] = ()


def decode(raw: bytes, shape: type[T]) -> T | str:
    """Read arguments; a text says what is wrong with them."""
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"bad arguments: {error}"


def written(told: ColleagueAnswer | ColleagueAnswers | Discussion) -> str:
    """Write it down for the model."""
    return msgspec.json.encode(told).decode()


def questions_of(result: str) -> int:
    """Count the questions behind a result; one, if that cannot be read any more."""
    try:
        told = msgspec.json.decode(result.encode("utf-8", "replace"), type=Counted)
    except msgspec.DecodeError:
        return 1
    return told.questions + sum(each.questions for each in told.answers)


def why_not(target: str, outcome: str, text: str) -> str:
    """Say why a colleague has not answered."""
    word = "" if outcome in {"failed", "ok"} else f" ({outcome})"
    return f"no answer of {target}{word}: {text}"


def to_judge(key: bytes, goal: str, target: str, answer: str) -> str:
    """Ask an agent what it makes of a colleague's answer.

    Args:
        key: `Services.frame_key`.
        goal: what it wanted to know; empty: it was told before.
        answer: data, as whatever comes from elsewhere.
    """
    begins = f"You asked {target}: {goal}\n\n" if goal else ""
    framed = tool_results.frame(key, answer, COLLABORATE)
    return (
        f"{begins}{target} answered:\n{framed}\n\nJudge this. If you have what you"
        " need, write [DONE] and nothing else. Else write your next message to"
        f" {target}, and nothing else."
    )


def back(chain: DelegationChain, source: str) -> DelegationChain:
    """Give the chain of an answer that goes back to who asked."""
    return msgspec.structs.replace(chain, agents=(*chain.agents, source), left=0)
