"""Builds the system prompt, layer by layer, within a budget of tokens for each. Pure.

Equal briefs give equal prompts, to the byte. Layers that are the same for every message
of a conversation come first, so that prompt caching at the provider works: persona
files, settings, tools, skills. Layers of one message are *fresh* and come last: date,
notes, relevant memories. `[Memory context]` is the very last.

A line that consists of `[Words in brackets]` is a headline, and only this file writes
headlines. Text of people, tools and memory cannot contain one; see `untrusted.py`.

The prompt may leave out subjects that a message does not mention. Only whole words
count: "residue" does not contain "due". Behind a setting, because a list of words is a
guess: it saves tokens and misses paraphrases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from actors.config.prompt import ContextConfig, GateName
from actors.rules.markers import descriptions as mark_texts
from actors.rules.markers.descriptions import SPOKEN_TO, Mode
from actors.rules.markers.tags import Family
from actors.rules.prompt import texts, transcript
from actors.rules.prompt.brief import BY_ITSELF, Brief, PromptMemory
from actors.rules.prompt.estimate import CHARACTERS_PER_TOKEN
from actors.rules.prompt.skills import LONGEST_LOOK, plain, says
from actors.rules.prompt.untrusted import BREAK, as_item, as_paragraphs, without_sender
from actors.rules.text.languages import ENGLISH_NAMES


class Layer(msgspec.Struct, frozen=True):
    """One layer of a prompt."""

    name: str
    text: str
    """Empty if it was left out; `why` holds the reason."""

    why: str
    """Its source, and what was cut."""

    tokens: int
    budget: int | None = None
    """Token limit; None: it is never cut."""

    is_fresh: bool = False
    """Whether it belongs to this message alone."""


def tokens(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def of_text(
    name: str, text: str, why: str, budget: int | None = None, *, is_fresh: bool = False
) -> Layer:
    """Make a layer of one text; a text over the budget is cut at the end."""
    size = tokens(text)
    if budget is None or size <= budget:
        return Layer(name, text, why, size, budget, is_fresh)
    if budget == 0:
        return Layer(name, "", f"{why}; left out: its budget is 0", 0, 0, is_fresh)
    kept = cut(text, budget)
    why = f"{why}; cut: {size:,} tokens are more than {budget:,}"
    return Layer(name, kept, why, tokens(kept), budget, is_fresh)


def cut(text: str, budget: int) -> str:
    """Keep the beginning of a text, and state how much is missing.

    Args:
        budget: tokens, at least 1.
    """
    most = budget * CHARACTERS_PER_TOKEN
    mark = f"\n[… {len(text):,} characters in all, the rest is cut …]"
    room = most - len(mark)
    # Too small for the note: return nothing that could be mistaken for the whole.
    return text[:room].rstrip() + mark if room > 0 else ""


def of_items(
    name: str,
    title: str,
    items: Sequence[str],
    budget: int | None,
    *,
    why: str,
    is_fresh: bool = False,
) -> Layer:
    """Make a layer of a list; items over the budget are left out from the end.

    Args:
        items: the most important first; none contains a headline.
        budget: token limit; None keeps all.
        is_fresh: as in `Layer`.
    """
    size = len(title)
    kept: list[str] = []
    room = None if budget is None else budget * CHARACTERS_PER_TOKEN
    for item in items:
        size += 1 + len(item)
        if room is not None and size > room:
            break
        kept.append(item)
    missing = len(items) - len(kept)
    if missing:
        why = f"{why}; left out for its budget: {missing} of {len(items)}"
    text = "\n".join((title, *kept)) if kept else ""
    return Layer(name, text, why, tokens(text), budget, is_fresh)


def within(layers: Sequence[Layer], total: int, order: Sequence[str]) -> list[Layer]:
    """Shrink layers until all fit the limit, as far as possible.

    Args:
        layers: in the order of the prompt.
        total: token limit of all layers together.
        order: names of the layers that may shrink, in this order.
    """
    excess = sum([layer.tokens for layer in layers]) - total
    fitted = list(layers)
    for name in order:
        if excess <= 0:
            break
        for at, layer in enumerate(fitted):
            if layer.name == name and layer.text and excess > 0:
                smaller = shrunk(layer, excess)
                excess -= layer.tokens - smaller.tokens
                fitted[at] = smaller
    return fitted


def shrunk(layer: Layer, by: int) -> Layer:
    """Shrink a layer by a number of tokens, or leave it out."""
    room = layer.tokens - by
    text = cut(layer.text, room) if room > 0 else ""
    what = "cut" if text else "left out"
    why = f"{layer.why}; {what}: the model's window is too small for all"
    return msgspec.structs.replace(layer, text=text, why=why, tokens=tokens(text))


def indented(text: str) -> str:
    """Format a text of several lines as one list item."""
    return "- " + as_paragraphs(text).replace("\n", "\n  ")


def listed(entries: Iterable[PromptMemory]) -> list[str]:
    """Format memories as list items."""
    return [
        f"- {as_item(each.key)}: {as_item(each.text)}"
        if each.key
        else f"- {as_item(each.text)}"
        for each in entries
    ]


# English, Spanish, German, Korean. Whole word forms, because endings are not guessed.
# Korean words may have an ending.
WORDS: Mapping[GateName, tuple[str, ...]] = {
    "scheduling": (
        *("schedule", "scheduled", "remind", "reminder", "reminders", "appointment"),
        *("appointments", "calendar", "deadline", "every day", "every week", "task"),
        *("tasks", "todo", "to-do", "tomorrow", "tonight", "next week", "cancel"),
        *("recuérdame", "recordatorio", "agenda", "cita", "citas", "calendario"),
        *("mañana", "cada día", "cada semana", "tarea", "tareas", "pendiente"),
        *("pendientes", "cancelar", "programar"),
        *("erinnere", "erinnern", "erinnerung", "erinnerungen", "termin", "termine"),
        *("kalender", "frist", "morgen", "jeden tag", "jede woche", "aufgabe"),
        *("aufgaben", "absagen", "wecker"),
        *("일정", "예약", "알림", "알려줘", "내일", "매일", "매주", "할 일", "할일"),
        *("작업", "취소", "마감"),
    ),
    "recall": (
        *("remember", "recall", "earlier", "last time", "yesterday", "we talked"),
        *("we discussed", "you said", "i told you", "previously", "before", "again"),
        *("recuerdas", "recuerda", "ayer", "la última vez", "te dije", "dijiste"),
        *("hablamos", "antes", "anteriormente"),
        *("erinnerst", "weißt du noch", "gestern", "letztes mal", "neulich", "vorhin"),
        *("früher", "besprochen", "hast du gesagt", "habe ich dir", "zuvor"),
        *("기억", "지난번", "어제", "전에", "아까", "말했", "얘기했", "이전"),
    ),
    "outcomes": (
        *("how did i do", "how did it go", "performance", "progress", "feedback"),
        *("reward", "rewards", "outcome", "outcomes", "result", "results", "improve"),
        *("rendimiento", "progreso", "resultado", "resultados", "recompensa"),
        *("mejorar", "cómo me fue"),
        *("leistung", "fortschritt", "ergebnis", "ergebnisse", "rückmeldung"),
        *("belohnung", "verbessern", "wie lief"),
        *("성과", "결과", "피드백", "보상", "진행", "개선"),
    ),
    "projects": (
        *("project", "projects", "file", "files", "folder", "directory", "repository"),
        *("repo", "code", "script", "document", "documents", "command", "run", "build"),
        *("proyecto", "proyectos", "archivo", "archivos", "carpeta", "código"),
        *("documento", "documentos", "ejecuta", "ejecutar", "comando"),
        *("projekt", "projekte", "datei", "dateien", "ordner", "verzeichnis"),
        *("quelltext", "skript", "dokument", "dokumente", "befehl", "ausführen"),
        *("프로젝트", "파일", "폴더", "코드", "문서", "명령", "실행", "스크립트"),
    ),
    "profile": (
        *("about me", "who am i", "my name", "know me", "my profile", "my birthday"),
        *("my preferences", "sobre mí", "quién soy", "mi nombre", "me conoces"),
        *("mi perfil", "mi cumpleaños", "mis preferencias"),
        *("über mich", "wer bin ich", "mein name", "meinen namen", "kennst du mich"),
        *("mein profil", "mein geburtstag", "meine vorlieben"),
        *("나에 대해", "내가 누구", "내 이름", "내 프로필", "내 생일"),
    ),
    "meta": (
        *("who are you", "what are you", "what can you do", "your name", "help"),
        *(
            "your instructions",
            "your skills",
            "your tools",
            "how do you work",
            "commands",
        ),
        *("quién eres", "qué eres", "qué puedes hacer", "tu nombre", "ayuda"),
        *("cómo funcionas", "comandos"),
        *("wer bist du", "was bist du", "was kannst du", "dein name", "hilfe"),
        *("wie funktionierst du", "befehle"),
        *("누구야", "누구세요", "뭘 할 수", "이름이 뭐", "도와줘", "도움", "명령어"),
    ),
}


def speaks_of(message: str, subject: GateName, further: tuple[str, ...] = ()) -> str:
    """Return the first word of a message about a subject; empty if there is none.

    Args:
        message: the message; only its beginning is searched.
        further: more words of the subject.
    """
    words = plain(message[:LONGEST_LOOK])
    for word, trigger in _triggers(subject, further):
        if trigger in words and _says(words, trigger):
            return word
    return ""


@lru_cache(maxsize=256)
def _triggers(
    subject: GateName, further: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the words of a subject, each with what is looked for in a message."""
    return tuple((word, plain(word)) for word in (*WORDS[subject], *further))


def _says(words: str, trigger: str) -> bool:
    if not (trigger and is_hangul(trigger[-1])):
        return says(words, trigger)
    at = words.find(trigger)
    while at > 0 and is_hangul(words[at - 1]):
        at = words.find(trigger, at + 1)
    return at >= 0


def is_hangul(character: str) -> bool:
    """Return whether a character is a Korean syllable."""
    return "\uac00" <= character <= "\ud7a3"


OF_THE_PAST = frozenset({"earlier", "summaries"})
"""Layers about earlier conversation."""

FILES = {"agents": "AGENTS.md", "legacy": "legacy.md"}

SHRINKING = (
    "logs",
    "outcomes",
    "notes",
    "relevant",
    "summaries",
    "earlier",
    "lessons",
    "tasks",
    "states",
    "profile",
    "project",
    "skills",
    "tools",
    "marks",
    "humaniser",
    "legacy",
)
"""Layers that shrink if the prompt is too long, in this order. Identity, sticky facts,
place and time never shrink.
"""

# Category of texts that only look like memories.
_NO_FACT = re.compile(r"\[IMAGE:|<tool_result|_history\Z", re.IGNORECASE)


class Prompt(msgspec.Struct, frozen=True):
    """A prompt, as layers and as text."""

    layers: tuple[Layer, ...]
    """All layers in order, including empty ones."""

    text: str
    notes: tuple[str, ...] = ()
    """Texts of the fresh layers, at the end of `text`."""

    tokens: int = 0
    summary: str = ""
    """The summary of earlier conversation as it is in `text`."""


def build(brief: Brief, total: int) -> Prompt:
    """Build a prompt."""
    brief = _said_once(brief)
    found = [*_standing(brief), *_fresh(brief)]
    fitted = within(found, total, SHRINKING)
    told = [layer for layer in fitted if layer.text]
    return Prompt(
        layers=tuple(fitted),
        text="\n\n".join([layer.text for layer in told]),
        notes=tuple([layer.text for layer in told if layer.is_fresh]),
        tokens=sum([layer.tokens for layer in told]),
        summary="\n\n".join([x.text for x in told if x.name in OF_THE_PAST]),
    )


# Chosen: longer than the names by which an agent is called.
_MENTION = 64
"""Characters by which a remembered message may differ from the shown one: a mention of
the agent at its beginning or end is not shown.
"""


def _said_once(brief: Brief) -> Brief:
    """Leave out memories that stand elsewhere in the prompt or among the messages.

    A summary is remembered, noted in the daily log, and kept with the conversation as
    long as that goes on; a remembered message may still be shown.
    """
    memories = brief.memories
    if not (memories.summaries or memories.logs or memories.relevant):
        return brief
    shown = {_squeezed(each) for each in brief.summaries}
    summaries = _unsaid(memories.summaries, shown)
    if brief.context.budgets.summaries and not _shut(brief, "recall"):
        shown |= {_squeezed(each) for each in summaries}
    logs = _unsaid(memories.logs, shown)
    shown |= {_squeezed(each) for each in logs}
    said = [_squeezed(without_sender(each)) for each in brief.said]
    relevant = tuple(
        fact
        for fact in memories.relevant
        if (words := _squeezed(fact.text)) not in shown
        and not (fact.key == "conversation" and _is_said(words, said))
    )
    memories = msgspec.structs.replace(
        memories, summaries=summaries, logs=logs, relevant=relevant
    )
    return msgspec.structs.replace(brief, memories=memories)


def _unsaid(texts: tuple[str, ...], shown: set[str]) -> tuple[str, ...]:
    return tuple(each for each in texts if _squeezed(each) not in shown)


def _is_said(words: str, said: list[str]) -> bool:
    """Return whether a remembered message is one of the shown ones."""
    for each in said:
        if words in each:
            return True
        begins_or_ends = words.startswith(each) or words.endswith(each)
        missing = len(words) - len(each)
        if begins_or_ends and missing <= min(_MENTION, len(each)):
            return True
    return False


def _squeezed(text: str) -> str:
    return " ".join(text.replace(BREAK, "").split())


def tokens_for(context: ContextConfig, others: int) -> int:
    """Return the token limit of a prompt.

    Args:
        others: tokens of the messages and of the tools' descriptions.
    """
    window = context.window_tokens
    reserve = min(context.reserve_tokens, window // 4)
    return max(window - reserve - others, 0)


# --- what is the same for every message ------------------------------------------


def _standing(brief: Brief) -> Iterator[Layer]:
    """Return the layers that are the same for a whole conversation."""
    budgets = brief.context.budgets
    yield from _identity(brief)
    if brief.context.humaniser:
        why = "context.humaniser is on"
        yield Layer("humaniser", texts.HUMANISER, why, tokens(texts.HUMANISER))
    if brief.mode != "conversation":
        text = texts.MODES[brief.mode]
        yield Layer("mode", text, f"it is asked in {brief.mode}", tokens(text))
    yield from _tools(brief)
    yield from _marks(brief)
    if brief.standing and brief.mode not in SPOKEN_TO:
        text = "\n\n".join(map(as_paragraphs, brief.standing))
        why = "the skills that the settings give it"
        yield of_text("skills", text, why, budgets.skills)
    if brief.colleagues and brief.mode not in SPOKEN_TO:
        yield _colleagues(brief)
    if brief.conducting and brief.mode == "conversation":
        text, why = brief.conducting, "it is a conductor, and [hiring] lets it"
        yield Layer("conducting", text, why, tokens(text))
    memories = brief.memories
    if memories.project and brief.mode not in SPOKEN_TO:
        yield _project(brief)
    yield from _meta(brief)
    yield from _place(brief)
    if memories.logs:
        logs = [indented(log) for log in reversed(memories.logs)]
        why = "what was noted of the last days, newest first"
        yield of_items("logs", "[Daily log]", logs, budgets.logs, why=why)
    yield from _known(brief)


def _identity(brief: Brief) -> Iterator[Layer]:
    """Return the identity layers: persona files, then the settings' prompt."""
    budgets = brief.context.budgets
    has_any = False
    for name, text in brief.files.named():
        if words := text.strip():
            has_any = True
            why = FILES.get(name, f"{name.upper()}.md")
            yield of_text(name, words, f"{why} of its folder", budgets.file)
    if words := brief.prompt.strip():
        has_any = True
        yield of_text("prompt", words, "prompt in the settings", budgets.prompt)
    if not has_any:
        words = texts.NOBODY.format(name=brief.name)
        why = "it has neither a persona's files nor a prompt"
        yield Layer("identity", words, why, tokens(words))


def _tools(brief: Brief) -> Iterator[Layer]:
    """Return instructions for the available tools, by group."""
    found: list[str] = []
    why: list[str] = []
    for group in texts.TOOL_GROUPS:
        there = [tool for tool in group.tools if tool in brief.tools]
        if not there:
            continue
        if group.gate is not None and (shut := _shut(brief, group.gate)):
            yield Layer(f"tools.{group.name}", "", shut, 0, 0)
            continue
        found.append(group.text)
        why.append(group.name)
    if found:
        text, from_where = "\n".join(found), f"it has tools: {', '.join(why)}"
        budget = brief.context.budgets.tools
        yield of_text("tools", text, from_where, budget)


def _marks(brief: Brief) -> Iterator[Layer]:
    """Return instructions for inline directives; the same in each conversation."""
    families = brief.marks
    if families & mark_texts.LATER and (shut := _shut(brief, "scheduling")):
        if mark_texts.told(families & mark_texts.LATER, brief.tools, brief.mode):
            yield Layer("marks.scheduling", "", shut, 0, 0)
        families -= mark_texts.LATER
    budget = brief.context.budgets.marks
    yield from _marks_of(families, brief.tools, brief.mode, budget)


# Why kept: they are the same for each message of a conversation.
@lru_cache(maxsize=256)
def _marks_of(
    families: frozenset[Family], tools: frozenset[str], mode: Mode, budget: int
) -> tuple[Layer, ...]:
    marks = mark_texts.told(families, tools, mode)
    if not marks:
        return ()
    items = [mark.text for mark in marks]
    why = f"it may use marks: {', '.join([mark.family for mark in marks])}"
    return (of_items("marks", mark_texts.TITLE, items, budget, why=why),)


def _colleagues(brief: Brief) -> Layer:
    known = "\n".join(
        f"- {each}: {as_item(what)}" if what else f"- {each}"
        for each, what in brief.colleagues.items()
    )
    text = texts.COLLEAGUES.format(known=known, first=next(iter(brief.colleagues)))
    return Layer("colleagues", text, "delegates in the settings", tokens(text))


def _project(brief: Brief) -> Layer:
    """Return the layer about the active project."""
    text, budget = brief.memories.project, brief.context.budgets.project
    if shut := _shut(brief, "projects"):
        return Layer("project", "", shut, 0, budget)
    why = "the state 'project' in its memory names it"
    told = f"{texts.PROJECT}\n\n{as_paragraphs(text)}"
    return of_text("project", told, why, budget)


def _meta(brief: Brief) -> Iterator[Layer]:
    """Return what the agent may say about itself, where the settings allow it."""
    if brief.mode != "conversation":
        return
    if shut := _shut(brief, "meta"):
        yield Layer("meta", "", shut, 0, 0)
        return
    text = texts.META.format(name=brief.name)
    yield Layer("meta", text, "what it is told about itself", tokens(text))


def _place(brief: Brief) -> Iterator[Layer]:
    """Return the layer about the chat and how to write there."""
    place = brief.place
    if brief.mode == "collaboration" or not place.connector:
        return
    style = place.reply_style
    if style is not None:
        text = style.writing
        if place.takes_media and style.media:
            text = f"{text} {style.media}"
        why = f"the platform is {place.platform}"
        yield Layer("channel_rules", text, why, tokens(text))
    if not place.is_direct:
        text = texts.GROUP
        yield Layer("group", text, "the chat is a group", tokens(text))
    if brief.partners:
        text = texts.PARTNERS.format(names=", ".join(f"@{x}" for x in brief.partners))
        why = "agents hear each other in this group (collaboration.visible)"
        yield Layer("partners", text, why, tokens(text))
    is_reachable = style is None or style.is_reachable_later
    if is_reachable and brief.marks & mark_texts.LATER:
        yield _channel(place.connector, place.chat, place.thread)


# Why kept: it is the same for each message of a chat.
@lru_cache(maxsize=1024)
def _channel(connector: str, chat: str, thread: str) -> Layer:
    """Return the layer with the name of the chat, for messages at a later time."""
    to = {"channel": connector, "to": chat}
    if thread:
        to["thread"] = thread
    there = as_item(json.dumps(to, ensure_ascii=False))
    text = texts.CHANNEL.format(place=there)
    return Layer("channel", text, "where the message was said", tokens(text))


def _known(brief: Brief) -> Iterator[Layer]:
    """Return the memory layers that do not depend on the message."""
    memories, budgets = brief.memories, brief.context.budgets
    if memories.sticky:
        why = "sticky facts, never cut"
        title = "[What always counts]"
        yield of_items("sticky", title, listed(memories.sticky), None, why=why)
    if memories.profile:
        section = Section(
            "profile", "[About this person]", budgets.profile, is_fresh=False
        )
        yield _gated(brief, "profile", section, listed(memories.profile))
    if memories.lessons:
        title, why = "[Lessons you have learnt]", "lessons in its memory"
        items = listed(memories.lessons)
        yield of_items("lessons", title, items, budgets.lessons, why=why)
    if memories.summaries:
        newest = [indented(each) for each in memories.summaries]
        title = "[What was said earlier]"
        section = Section("summaries", title, budgets.summaries, is_fresh=False)
        # Newest first, since items over the budget are left out from the end.
        yield _gated(brief, "recall", section, newest[::-1])


# --- what belongs to one message ---------------------------------------------------


def _fresh(brief: Brief) -> Iterator[Layer]:
    """Return the fresh layers of a message."""
    memories, budgets = brief.memories, brief.context.budgets
    yield from _earlier(brief)
    if brief.path and brief.mode not in SPOKEN_TO:
        path = " → ".join(brief.path)
        text = texts.DELEGATED.format(source=brief.path[-2], path=path)
        why = "another agent handed it on"
        yield Layer("delegated", text, why, tokens(text), is_fresh=True)
    if brief.notes:
        text = "\n\n".join(map(as_paragraphs, brief.notes))
        why = "skills that the message calls for, and servers of tools"
        yield of_text("notes", text, why, budgets.notes, is_fresh=True)
    yield from _lately(brief)
    if language := memories.language or brief.context.language:
        named = ENGLISH_NAMES.get(language.strip().lower(), language)
        text = texts.LANGUAGE.format(language=as_item(named)[:40])
        whose = "the person wishes" if memories.language else "context.language says"
        yield Layer("language", text, f"as {whose}", tokens(text), is_fresh=True)
    text = f"It is {brief.now:%A, %Y-%m-%d %H:%M} ({_zone(brief)})."
    why = "date and time of the message, in context.time_zone"
    yield Layer("date", text, why, tokens(text), is_fresh=True)
    if "memory_search" in brief.tools:
        text, why = texts.REMINDER, "it has the tool memory_search"
        yield Layer("reminder", text, why, tokens(text), is_fresh=True)
    facts = [fact for fact in memories.relevant if not _is_no_fact(fact)]
    if facts:
        relevant = Section("relevant", "[Memory context]", budgets.facts)
        yield _gated(brief, "recall", relevant, listed(facts))


def _lately(brief: Brief) -> Iterator[Layer]:
    """Return the memories of what is under way."""
    memories, budgets = brief.memories, brief.context.budgets
    if memories.outcomes:
        outcomes = Section("outcomes", "[How it went lately]", budgets.outcomes)
        yield _gated(brief, "outcomes", outcomes, listed(memories.outcomes))
    if memories.tasks:
        tasks = Section("tasks", "[Still to be done]", budgets.tasks)
        yield _gated(brief, "scheduling", tasks, listed(memories.tasks))
    if memories.states:
        title, why = "[State]", "values in its memory"
        items = listed(memories.states)
        yield of_items("states", title, items, budgets.states, why=why, is_fresh=True)


def _earlier(brief: Brief) -> Iterator[Layer]:
    """Return the summary of this conversation before the shown messages."""
    if not (brief.summaries or brief.left_out):
        return
    told = transcript.told_of(brief.left_out)
    # Newest first, since items over the budget are left out from the end.
    items = [*told, *(indented(each) for each in brief.summaries[::-1])]
    title, why = "[Earlier in this conversation]", "summaries that took lines' place"
    budget = brief.context.budgets.summaries
    yield of_items("earlier", title, items, budget, why=why, is_fresh=True)


def _zone(brief: Brief) -> str:
    name = brief.context.time_zone
    offset = brief.now.strftime("%z")
    return name if name == "UTC" else f"{name}, UTC{offset[:3]}:{offset[3:5]}"


def _is_no_fact(fact: PromptMemory) -> bool:
    return bool(_NO_FACT.search(fact.text) or _NO_FACT.search(fact.key))


# --- what they have in common ------------------------------------------------------


class Section(msgspec.Struct, frozen=True):
    """A list section of the prompt."""

    name: str
    title: str
    budget: int
    is_fresh: bool = True


def _gated(
    brief: Brief, gate: GateName, section: Section, items: Sequence[str]
) -> Layer:
    """Return a list section, empty if topic gating leaves it out."""
    if shut := _shut(brief, gate):
        return Layer(section.name, "", shut, 0, section.budget, section.is_fresh)
    return of_items(
        section.name,
        section.title,
        items,
        section.budget,
        why="from its memory",
        is_fresh=section.is_fresh,
    )


def _shut(brief: Brief, gate: GateName) -> str:
    """Return why topic gating leaves a subject out; empty if it does not."""
    context = brief.context
    if gate not in context.gates or brief.mode in BY_ITSELF:
        return ""
    if speaks_of(brief.words, gate, context.gate_words.get(gate, ())):
        return ""
    return f"left out: the message has no word of the gate {gate!r}"
