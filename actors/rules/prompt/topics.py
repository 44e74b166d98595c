"""Topic gating: which subjects a message mentions. Pure.

The prompt may leave out other subjects. Only whole words count: "residue" does not
contain "due". Behind a setting, because a list of words is a guess: it saves tokens and
misses paraphrases.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from actors.config.prompt import GateName
from actors.rules.prompt.skills import LONGEST_LOOK, plain, says

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
        subject: the subject.
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
