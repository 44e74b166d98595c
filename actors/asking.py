"""One round of a turn: the model is asked, and asked again if it is busy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from actors.errors import ModelBusyError, ModelRefusedError
from actors.messages import Line, ModelRequest
from actors.rules import prompt, transcript
from actors.rules import turn as rules

if TYPE_CHECKING:
    from actors.messages import ModelAnswer, ToolSpec
    from actors.persona import Persona
    from actors.protocol import StartTurn
    from actors.services import Services
    from actors.words import Words

# Chosen: a busy model is asked three times in all; longer troubles are for the
# person to know of, and for the durable retry of the message.
ATTEMPTS = 3

# Chosen: seconds before the second attempt, doubled for the third; a provider's own
# `retry_after` counts up to the longest.
FIRST_WAIT = 0.5
LONGEST_WAIT = 20.0


class Asking:
    """Asks the model of one turn.

    Args:
        start: what was asked, and the conversation before it.
        persona: whose model, and what it is told about itself.
        services: clock and counts.
        words: hears what the model says.
    """

    __slots__ = ("_persona", "_services", "_start", "_words")

    def __init__(
        self, start: StartTurn, persona: Persona, services: Services, words: Words
    ) -> None:
        self._start = start
        self._persona = persona
        self._services = services
        self._words = words

    async def ask(
        self, lines: tuple[Line, ...], tools: tuple[ToolSpec, ...]
    ) -> rules.ModelReplied | rules.ModelFailed:
        """Ask the model; more than once if it is busy and has not said a word.

        Args:
            lines: what the turn has added to the conversation so far.
            tools: what the model may call; empty: it must answer in words.
        """
        request = self._request(lines, tools)
        wait = FIRST_WAIT
        for attempt in range(1, ATTEMPTS + 1):
            spoken: list[str] = []
            try:
                answer = await self._ask_once(request, spoken)
            except ModelRefusedError as error:
                return rules.ModelFailed("refused", str(error))
            except ModelBusyError as error:
                if spoken or attempt == ATTEMPTS:
                    return rules.ModelFailed("busy", str(error))
                asked = error.retry_after if error.retry_after is not None else wait
                await trio.sleep(min(max(asked, 0.0), LONGEST_WAIT))
                wait *= 2
            else:
                return rules.ModelReplied(
                    answer.text, answer.tool_calls, answer.usage, self._start.attempt
                )
        raise AssertionError("unreachable: the last attempt returns")

    async def _ask_once(self, request: ModelRequest, spoken: list[str]) -> ModelAnswer:
        metrics = self._services.metrics
        speak = partial(self._words.speak, spoken)
        began = self._services.clock.monotonic()
        outcome = "cancelled"
        try:
            answer = await self._persona.model.answer(request, speak)
            outcome = "ok"
        except ModelBusyError:
            outcome = "busy"
            raise
        except ModelRefusedError:
            outcome = "refused"
            raise
        finally:
            seconds = self._services.clock.monotonic() - began
            metrics.model_call(self._persona.config.model, outcome, seconds)
        metrics.tokens(self._persona.config.model, answer.usage)
        return answer

    def _request(
        self, lines: tuple[Line, ...], tools: tuple[ToolSpec, ...]
    ) -> ModelRequest:
        persona = self._persona
        start = self._start
        inbound = start.inbound
        asked = Line("user", inbound.text, name=inbound.sender_name)
        history = transcript.prepare(
            (*start.history, asked), persona.config.max_history + 1
        )
        return ModelRequest(
            model=persona.model_name,
            agent=persona.name,
            correlation_id=inbound.correlation_id,
            system=prompt.system_prompt(
                persona.name, persona.files, persona.config.prompt, persona.colleagues
            ),
            lines=(*history, *lines),
            tools=tools,
            temperature=persona.config.temperature,
            max_tokens=persona.config.max_tokens,
        )
