"""Reads a planner's decision whether its agent does anything by itself; pure.

A model is asked for one object, which is read against a schema. What cannot be read is
told to the model, which is then asked again: a decision is never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

MOST_STEPS = 20
MOST_STEP = 1_000
"""Characters of one step."""

MOST_REASONING = 2_000
MOST_SHOWN = 4_000
"""Characters of an answer that could not be read which the model is shown again."""

MOST_LOGGED = 1_200
"""Characters of an entry in the day's log."""

Step = Annotated[str, Meta(min_length=1, max_length=MOST_STEP)]

ASK = (
    "(Decide now whether you do anything. If nothing needs to be done, do not act: that"
    " is the usual case, and costs nothing. Else give a plan of few steps that you can"
    " carry out at once{tools}. Do not repeat what your notes of these days say is"
    " done. Answer with one JSON object and nothing before or after it, by this"
    " schema:\n{schema})"
)
AGAIN = (
    "(That could not be read: {why}. Answer with the one JSON object that was asked"
    " for, and nothing before or after it.)"
)
CARRY_OUT = (
    "(You decided by yourself to act; nobody wrote this. Why: {reasoning}\n"
    "Carry out the plan now, with your tools where they help. Then say in a few"
    " sentences what you did, for the people in this chat; if nothing came of it that"
    " they need to know, answer NO_REPLY.)\n{plan}"
)


class PlannerDecision(msgspec.Struct, frozen=True):
    """What a planner has decided."""

    should_act: bool
    """Whether anything is done now."""

    reasoning: Annotated[str, Meta(max_length=MOST_REASONING)]
    """Why, in a sentence or two."""

    plan: Annotated[tuple[Step, ...], Meta(max_length=MOST_STEPS)] = ()
    """The steps, in order; needed if anything is done."""

    def __post_init__(self) -> None:
        """See that there is a plan if there is to be one.

        Raises:
            ValueError: there is none; msgspec tells it as a `ValidationError`.
        """
        if self.should_act and not any(each.strip() for each in self.plan):
            raise ValueError("`should_act` is true, and `plan` has no steps")


class UnreadableDecision(msgspec.Struct, frozen=True):
    """An answer of a planner that holds no decision."""

    why: str
    """For the model that gave it."""


SCHEMA = msgspec.json.encode(
    {
        "type": "object",
        "properties": {
            "should_act": {"type": "boolean"},
            "reasoning": {"type": "string", "maxLength": MOST_REASONING},
            "plan": {
                "type": "array",
                "items": {"type": "string", "maxLength": MOST_STEP},
                "maxItems": MOST_STEPS,
            },
        },
        "required": ["should_act", "reasoning", "plan"],
    }
).decode()
"""As models are shown it; `PlannerDecision` is what counts."""


def ask(abilities: Iterable[str]) -> str:
    """Ask for a decision."""
    names = ", ".join(abilities)
    tools = f", with these tools: {names}" if names else ", in words alone"
    return ASK.format(tools=tools, schema=SCHEMA)


def again(unreadable: UnreadableDecision) -> str:
    """Ask once more, and say what was wrong."""
    return AGAIN.format(why=unreadable.why)


def read(text: str) -> PlannerDecision | UnreadableDecision:
    """Read a planner's answer; words and fences around its object are passed over."""
    begin, end = text.find("{"), text.rfind("}")
    if not 0 <= begin < end:
        return UnreadableDecision("it holds no JSON object")
    try:
        return msgspec.json.decode(text[begin : end + 1], type=PlannerDecision)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return UnreadableDecision(f"{error}")


def carry_out(decision: PlannerDecision) -> str:
    """Write what the executor is asked to do."""
    steps = [each.strip() for each in decision.plan if each.strip()]
    plan = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
    why = " ".join(decision.reasoning.split()) or "-"
    return CARRY_OUT.format(reasoning=why, plan=plan)


def steps_of(task: str) -> str:
    """Give the plan alone, in one line, of what `carry_out` wrote."""
    return " ".join(task.partition("NO_REPLY.)\n")[2].split())


def log_entry(task: str, said: str) -> str:
    """Write what a day's log keeps of a run.

    Args:
        task: what `carry_out` wrote.
        said: what people read of it; empty: nothing.
    """
    plan = steps_of(task)
    words = " ".join(said.split()) or "nothing to report"
    half = MOST_LOGGED // 2
    return f"By myself: {_cut(plan, half)} → {_cut(words, half)}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
