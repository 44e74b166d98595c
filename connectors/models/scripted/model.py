"""The offline model: plays a script instead of asking a provider.

Needs no key and no network; the first run, the tests and the benchmarks use it.
Deterministic: the same request gets the same answer, save for the failures a
script orders by number. `script.py` decides what is said, this module says it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import trio

from actors.errors import ModelBusyError, ModelRefusedError
from actors.messages.inbound import ModelAnswer, ModelRequest, Usage
from connectors.models.scripted.script import load_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.ports import Speak
    from connectors.config.models import ScriptedModelConfig
    from connectors.models.scripted.script import Failure, Script, ScriptedAnswer

# A word with the space before it; what is left at the end is space alone. Joined
# again the pieces are the text, to the character.
WORD = re.compile(r"\s*\S+|\s+")

CHARACTERS_PER_TOKEN = 4
"""What a token is reckoned at; about right for English."""


class ScriptedModel:
    """A model that answers by the rules of a script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        # Bounded: at most one number per rule of the script.
        self._failures: dict[int, int] = {}

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        """Answer as the first matching rule says, word by word.

        Raises:
            ModelBusyError: the rule says `busy` or `truncate`.
            ModelRefusedError: the rule says `refused`.
        """
        plan = self._script.plan(request)
        # Counted on arrival: which request fails must not depend on who waits longer.
        failure = self._next_failure(plan)
        await trio.sleep(plan.action.delay)
        if failure is not None:
            await self._fail(failure, plan, speak)
        await say(WORD.findall(plan.text), plan.action.word_delay, speak)
        return ModelAnswer(
            text=plan.text,
            tool_calls=plan.tool_calls,
            usage=reckon_usage(request, plan),
            stop_reason="tools" if plan.tool_calls else "end",
        )

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    def _next_failure(self, plan: ScriptedAnswer) -> Failure | None:
        if plan.action.fail is None or plan.action.fail_times is None:
            return plan.action.fail
        failed = self._failures.get(plan.rule, 0)
        if failed >= plan.action.fail_times:
            return None
        self._failures[plan.rule] = failed + 1
        return plan.action.fail

    async def _fail(self, failure: Failure, plan: ScriptedAnswer, speak: Speak) -> None:
        where = f"the script's rule {plan.rule + 1}"
        match failure:
            case "busy":
                raise ModelBusyError(
                    f"{where} is busy to order",
                    kind="rate",
                    retry_after=plan.action.retry_after,
                )
            case "refused":
                raise ModelRefusedError(f"{where} refuses to order", kind="content")
            case "hang":
                await trio.sleep_forever()
            case "truncate":
                words: list[str] = WORD.findall(plan.text)
                half = words[: len(words) // 2]
                await say(half, plan.action.word_delay, speak)
                raise ModelBusyError(
                    f"{where} stopped in mid-answer, to order", kind="protocol"
                )


async def say(words: list[str], word_delay: float, speak: Speak) -> None:
    """Say words with a pause of `word_delay` seconds between two of them."""
    for number, word in enumerate(words):
        if number and word_delay:
            await trio.sleep(word_delay)
        speak(word)


def reckon_usage(request: ModelRequest, plan: ScriptedAnswer) -> Usage:
    """Reckon tokens from characters, as nobody counts them here."""
    heard = len(request.system) + sum(len(line.text) for line in request.lines)
    return Usage(
        input_tokens=heard // CHARACTERS_PER_TOKEN,
        output_tokens=len(plan.text) // CHARACTERS_PER_TOKEN,
    )


def make_model(
    config: ScriptedModelConfig, _wall_clock: Callable[[], float]
) -> ScriptedModel:
    """Make the model of some settings.

    Raises:
        runtime.errors.SettingsError: the script is wrong.
    """
    return ScriptedModel(load_script(config.script))
