"""The embedded model: answers by rules of a file, without a network or a key.

Made for `kind = "scripted"`; the first run, most tests and the benchmarks use it.
Deterministic: a rule sees one request and nothing else, so the same request gets the
same answer, save for the failures that a script orders by number.

A rule is looked for in the file's order. Its `pattern` is a regular expression searched
in the first `MOST_SEARCHED` characters of the last line a person, agent or tool wrote;
`reply`, the delegated task and the tools' arguments may use what it captured: `{1}`,
`{name}`, and `{0}` for all that matched. Braces meant as braces are doubled.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
import trio

from actors.errors import ModelBusyError, ModelRefusedError
from actors.messages.inbound import (
    ModelAnswer,
    ModelRequest,
    ToolCall,
    TranscriptLine,
    Usage,
)
from actors.ports import Speak
from actors.rules.groups.overheard import without_overheard
from actors.rules.prompt.untrusted import unframe, without_sender
from connectors.config.models import ScriptedModelConfig
from runtime.config import loader as config

# At the end of a capture also the beginning of one, which what follows could end.
MARKER = re.compile(r"\[(?=/?[A-Za-z_]+[:\]]|/?[A-Za-z_]*\Z)")


class ReplyTemplate:
    """A text with captures to fill in.

    Args:
        text: the text, with `{1}` and `{name}` for captures, `{{` for a brace.

    Raises:
        ValueError: the pattern has no such capture, or a brace stands alone.
    """

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self._parts: list[tuple[str, int | None]] = []
        try:
            parsed = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ValueError(
                f"{text!r}: {error}; write {{{{ for a brace that is no capture"
            ) from error
        for literal, field, spec, conversion in parsed:
            if spec or conversion:
                raise ValueError(f"{text!r}: a capture is only its name in braces")
            self._parts.append(
                (literal, None if field is None else capture(field, pattern))
            )

    def render(self, match: re.Match[str]) -> str:
        """Fill in the captures; one that took no part in the match is empty."""
        return "".join(
            literal if group is None else literal + (match[group] or "")
            for literal, group in self._parts
        )

    def render_words(self, match: re.Match[str]) -> str:
        """Fill in the captures for people to read.

        Why not as they are: what is said is searched for markers such as
        `[DELEGATE:ben]`, and those must come from the script, not from somebody
        who calls himself that.
        """
        return "".join(
            [
                literal if group is None else literal + unmarked(match[group] or "")
                for literal, group in self._parts
            ]
        )


class ArgumentsTemplate:
    """A JSON value with captures to fill into its texts.

    Args:
        value: the value; other than texts, tables and lists stay as they are.

    Raises:
        ValueError: as for `ReplyTemplate`.
    """

    def __init__(self, value: object, pattern: re.Pattern[str]) -> None:
        self._value = value
        if isinstance(value, str):
            self._value = ReplyTemplate(value, pattern)
        elif isinstance(value, dict):
            table = cast("dict[str, object]", value)
            self._value = {
                key: ArgumentsTemplate(each, pattern) for key, each in table.items()
            }
        elif isinstance(value, list):
            items = cast("list[object]", value)
            self._value = [ArgumentsTemplate(each, pattern) for each in items]

    def render(self, match: re.Match[str]) -> object:
        """Fill in the captures."""
        value = self._value
        if isinstance(value, ReplyTemplate):
            return value.render(match)
        if isinstance(value, dict):
            table = cast("dict[str, ArgumentsTemplate]", value)
            return {key: each.render(match) for key, each in table.items()}
        if isinstance(value, list):
            items = cast("list[ArgumentsTemplate]", value)
            return [each.render(match) for each in items]
        return value


def capture(field: str, pattern: re.Pattern[str]) -> int:
    """Find the number of a capture.

    Raises:
        ValueError: the pattern has none of that name or number.
    """
    number = int(field) if field.isascii() and field.isdigit() else -1
    number = pattern.groupindex.get(field, number)
    if not 0 <= number <= pattern.groups:
        known = ["{0}", *(f"{{{n}}}" for n in range(1, pattern.groups + 1))]
        known += [f"{{{name}}}" for name in pattern.groupindex]
        raise ValueError(
            f"the pattern captures no {{{field}}}; known: {', '.join(known)}"
        )
    return number


def unmarked(text: str) -> str:
    """Open every `[NAME]` and `[NAME:` with a round bracket instead."""
    return MARKER.sub("(", text)


Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Failure = Literal["busy", "refused", "hang", "truncate"]

ANY_TOOL = "*"
MOST_SEARCHED = 12_000
"""Characters of a line in which a pattern is looked for, from its beginning: some
patterns take time in proportion to the square of that, and nobody else runs
meanwhile."""

DEFAULT = -1
"""Position of the default, which is not among the rules of the file."""


class CallSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool that a rule calls."""

    name: Name
    arguments: dict[str, Any] = {}
    """Whatever JSON has; its texts may use captures, and stay texts."""


class DelegateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Work that a rule hands to another agent, by a tag after the reply."""

    agent: Name
    task: Name
    """May use captures."""


class ActionSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What the model does."""

    reply: str = ""
    """The answer's words; may use captures."""

    delay: Seconds = 0.0
    """Seconds before the first word."""

    word_delay: Seconds = 0.0
    """Seconds between two words."""

    tool: tuple[CallSettings, ...] = ()
    """Tools called after the words, if the request offers them."""

    delegate: DelegateSettings | None = None
    fail: Failure | None = None
    """Fail instead: try again, never, no answer at all, or half an answer."""

    fail_times: Count | None = None
    """How many matching requests fail before one is answered; none: all fail."""

    retry_after: Seconds | None = None
    """With `fail = "busy"`: the seconds the caller is asked to wait."""


class RuleSettings(ActionSettings, frozen=True, kw_only=True):
    """What the model does, and when."""

    agent: str = ""
    """The agent whose rule this is; empty: any."""

    pattern: str = ""
    """Regular expression; may be left out only beside `on_tool`."""

    on_tool: str = ""
    """Look at results of the tool of this name (`*`: any) instead of at words."""

    ignore_case: bool = True


class ScriptSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole script file."""

    default: ActionSettings
    """What the model does when no rule matches; `{0}` is the whole line."""

    rule: tuple[RuleSettings, ...] = ()


class ScriptedAnswer(msgspec.Struct, frozen=True):
    """How one request is to be answered."""

    rule: int
    """Position of the rule in the file, from 0; -1 is the default."""

    action: ActionSettings
    text: str
    tool_calls: tuple[ToolCall, ...]


class Script:
    """A checked script; ask it for plans.

    Raises:
        ValueError: a rule contradicts itself; `complaints` tells all that do.
    """

    def __init__(self, settings: ScriptSettings) -> None:
        # Invariant: the last rule is the default and matches every request.
        rules = [*settings.rule, default_rule(settings.default)]
        numbers = [*range(len(settings.rule)), DEFAULT]
        self._rules = [ScriptRule(*each) for each in zip(numbers, rules, strict=True)]

    def plan(self, request: ModelRequest) -> ScriptedAnswer:
        """Choose the first rule that matches the request, or the default."""
        text, tool = heard(request.lines)
        rule, match = next(
            (rule, match)
            for rule in self._rules
            if rule.is_for(request.agent, tool)
            and (match := rule.search(text)) is not None
        )
        return rule.plan(match, request)


class ScriptRule:
    """One rule, compiled.

    Args:
        number: position in the file, from 0; -1 is the default.

    Raises:
        ValueError: the settings contradict themselves; the text says how.
    """

    def __init__(self, number: int, settings: RuleSettings) -> None:
        check_sense(settings)
        if number != DEFAULT and not (settings.pattern or settings.on_tool):
            raise ValueError("matches nothing; give it pattern or on_tool")
        try:
            self.pattern = re.compile(
                settings.pattern or r"(?s)\A.*",
                re.IGNORECASE if settings.ignore_case else re.NOFLAG,
            )
        except re.error as error:
            raise ValueError(
                f"pattern {settings.pattern!r} is no regular expression: {error}"
            ) from error
        self._number = number
        self._settings = settings
        self._reply = ReplyTemplate(spoken_template(settings), self.pattern)
        self._calls = [
            (call.name, ArgumentsTemplate(call.arguments, self.pattern))
            for call in settings.tool
        ]

    def is_for(self, agent: str, tool: str) -> bool:
        """Tell whether this rule looks at such a line at all."""
        if self._number == DEFAULT:
            return True
        if self._settings.agent not in {"", agent}:
            return False
        wanted = self._settings.on_tool
        return wanted == tool or bool(tool and wanted == ANY_TOOL)

    def search(self, text: str) -> re.Match[str] | None:
        """Look for the rule's pattern; one that takes every line takes all of it."""
        if not self._settings.pattern:
            return self.pattern.search(text)
        return self.pattern.search(text, 0, MOST_SEARCHED)

    def plan(self, match: re.Match[str], request: ModelRequest) -> ScriptedAnswer:
        """Fill in what the pattern captured."""
        text = self._reply.render_words(match)
        missing = missing_tools(self._calls, request)
        if missing:
            # A model can only call what it is offered; without tools it must
            # answer in words, which is how a tool loop ends.
            text = text or f"I would need {missing} for that, and I may not use it now."
            return ScriptedAnswer(self._number, self._settings, text, ())
        calls = tuple(
            ToolCall(
                # Unique in its conversation, and the same for the same request.
                id=f"call_{len(request.lines)}_{position}",
                name=name,
                arguments=msgspec.json.encode(arguments.render(match)),
            )
            for position, (name, arguments) in enumerate(self._calls)
        )
        return ScriptedAnswer(self._number, self._settings, text, calls)


def load_script(path: Path) -> Script:
    """Read and check a script file.

    Raises:
        SettingsError: something is wrong in it; its `problems` tell each with its
            place.
    """
    # No environment: a script holds no secrets.
    settings = config.load(path, ScriptSettings, environment={}, check=complaints)
    return Script(settings.value)


def complaints(settings: ScriptSettings) -> Iterator[config.Complaint]:
    """Name every rule that contradicts itself."""
    for number, rule in enumerate(settings.rule):
        try:
            ScriptRule(number, rule)
        except ValueError as error:
            yield config.Complaint(("rule", number), str(error))
    try:
        ScriptRule(DEFAULT, default_rule(settings.default))
    except ValueError as error:
        yield config.Complaint(("default",), str(error))


def heard(lines: tuple[TranscriptLine, ...]) -> tuple[str, str]:
    """Find what is to be answered: its text, and the tool it came from or nothing."""
    for line in reversed(lines):
        if line.role == "user":
            # In a group the text begins with its writer's name, and has no other.
            asked = without_overheard(line.text)
            return asked if line.name else without_sender(asked), ""
        if line.role == "tool":
            return unframe(line.text), line.name or tool_name(lines, line.tool_call_id)
    return "", ""


def tool_name(lines: tuple[TranscriptLine, ...], call_id: str) -> str:
    """Find the name of the tool that was called under an id; `?` if nobody did."""
    for line in reversed(lines):
        for call in line.tool_calls:
            if call.id == call_id:
                return call.name
    return "?"


def missing_tools(
    calls: list[tuple[str, ArgumentsTemplate]], request: ModelRequest
) -> str:
    """Name the tools that are to be called but are not offered; empty if none."""
    offered = {tool.name for tool in request.tools}
    return ", ".join([name for name, _ in calls if name not in offered])


def check_sense(settings: RuleSettings) -> None:
    """Refuse rules that cannot match, do nothing or say half.

    Raises:
        ValueError: with what to change.
    """
    if not (settings.reply or settings.tool or settings.delegate or settings.fail):
        raise ValueError("does nothing; give it reply, tool, delegate or fail")
    if settings.fail_times is not None and settings.fail is None:
        raise ValueError("fail_times needs fail")
    if settings.fail_times is not None and not (
        settings.reply or settings.tool or settings.delegate
    ):
        raise ValueError("after fail_times failures it needs a reply to give")
    if settings.retry_after is not None and settings.fail != "busy":
        raise ValueError('retry_after needs fail = "busy"')


def default_rule(action: ActionSettings) -> RuleSettings:
    """Make the rule that matches everything."""
    return RuleSettings(**msgspec.structs.asdict(action))


def spoken_template(settings: RuleSettings) -> str:
    """Put the delegation's tag after the reply."""
    if settings.delegate is None:
        return settings.reply
    to = settings.delegate
    tag = f"[DELEGATE:{to.agent}] {to.task} [/DELEGATE]"
    return f"{settings.reply}\n{tag}" if settings.reply else tag


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
    heard = len(request.system) + sum([len(line.text) for line in request.lines])
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
