"""The settings of what agents can do: programs, the web, files, attachments.

Only shapes, bounds and defaults; `app.py` puts them together.
"""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from actors.config.values import Count, Seconds
from runtime.config.loader import GivenSecret, WrittenPath


class SandboxConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where the programs run that agents start."""

    mode: Literal["auto", "bubblewrap", "landlock", "none"] = "auto"
    """`auto`: bubblewrap if it works here, else Landlock. `none`: no protection."""

    required: bool = True
    """Whether programs are refused where there is no sandbox; False runs them with no
    protection then."""

    readable: tuple[Path, ...] = ()
    """Files and folders that all programs may read, besides what the system needs."""


class FetchConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What may be fetched from addresses that people and models give."""

    allow: tuple[str, ...] = ()
    """Exceptions: networks and hosts with ports that are reached though they are not
    public, as `10.1.0.0/16`, `10.1.2.3` or `search.lan:8080`."""

    max_bytes: Annotated[int, Meta(ge=1, le=1_073_741_824)] = 10_485_760
    """Longest answer, as sent and as unpacked, in bytes."""

    timeout: Seconds = 30.0
    """Seconds for one answer, redirects included."""

    max_at_once: Annotated[int, Meta(ge=1, le=1_000)] = 8
    """Answers fetched at once, three quarters of them for one person; more wait, within
    their `timeout`."""

    page_chars: Annotated[int, Meta(ge=100, le=1_000_000)] = 3_000
    """Most characters of a page that the tool `http_fetch` gives at once."""


class WebSearchConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The search engine behind the tool `web_search`."""

    kind: Literal["off", "searxng", "brave"] = "off"
    """Which engine; `off`: no agent can have the tool."""

    base_url: str = ""
    """Its address: of SearXNG up to and without `/search`; of Brave empty."""

    api_key: GivenSecret | None = None
    """Brave's key."""

    results: Annotated[int, Meta(ge=1, le=20)] = 5
    """Pages given for one search."""


class WorkspaceConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where agents keep the files they work on."""

    path: WrittenPath = "var/workspace"
    """The folder; each agent has one of its own in it."""

    max_bytes: Count = 104_857_600
    """Most bytes of all files of one agent, as its tools count them; a command that
    makes more is ended."""

    max_file_bytes: Count = 10_485_760
    """Longest file that the tools read or write, in bytes."""

    max_files: Count = 10_000
    """Most files and folders of one agent."""

    keep_days: Annotated[float, Meta(ge=1, le=36_500)] = 90.0
    """Days after its last use for which the folder of a program's conversation is
    kept; with it goes what the program itself remembers."""

    read_chars: Annotated[int, Meta(ge=100, le=1_000_000)] = 8_000
    """Most characters of a file that the tool `read_file` gives at once."""

    guide_every: Annotated[float, Meta(ge=0, le=31_536_000)] = 86_400.0
    """Seconds after which `AGENTS.md` in each folder, with tables of the agent's skills
    and projects, is written anew if they have changed; 0: there is none."""


class FilesConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The files that agents send: what is copied, and how long it is kept."""

    path: WrittenPath = ""
    """The folder of the copies, for this company alone; empty: beside the database,
    with its name and `.files`."""

    max_file_bytes: Count = 52_428_800
    """Longest file that is sent, in bytes; a platform may take less."""

    max_bytes: Count = 1_073_741_824
    """Most bytes of all copies, of one agent's three quarters at most; then nothing
    more is sent until some are removed."""

    keep_days: Annotated[float, Meta(ge=1, le=365)] = 7.0
    """Days for which a copy is kept after it was made; longer only while it still has
    to go out. A delivery that was given up as a dead letter has not: retried later than
    that (`callboard queue retry`), it says in words that its file could not be sent."""


class TranscriberConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Who writes down recordings: an endpoint like OpenAI's `audio/transcriptions`."""

    base_url: str = "https://api.openai.com/v1"
    """Address up to and without `/audio/transcriptions`."""

    api_key: GivenSecret | None = None
    """Sent as a bearer token; leave it out for a local server without keys."""

    model: str = "whisper-1"
    """The provider's name of the model."""

    language: str = ""
    """ISO 639-1 code of the language spoken, as `de`; empty: found out."""

    timeout: Seconds = 120.0
    """Seconds for one recording."""


class SpeakerConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Who speaks texts: an endpoint like OpenAI's `audio/speech`."""

    base_url: str = "https://api.openai.com/v1"
    """Address up to and without `/audio/speech`."""

    api_key: GivenSecret | None = None
    """Sent as a bearer token; leave it out for a local server without keys."""

    model: str = "gpt-4o-mini-tts"
    """The provider's name of the model."""

    voice: Annotated[str, Meta(min_length=1)] = "alloy"
    """The provider's name of the voice, unless whoever asks names another."""

    format: Literal["mp3", "opus", "aac", "flac", "wav"] = "mp3"
    """In what the recordings come."""

    max_chars: Annotated[int, Meta(ge=1, le=100_000)] = 4_096
    """Longest text that is spoken, in characters."""

    timeout: Seconds = 60.0
    """Seconds for one text."""


VoiceLine = Annotated[
    str,
    Meta(
        pattern=r"^[\s\S]*\{words\}[\s\S]*$",
        max_length=200,
        description="a text with {words}",
    ),
]


class MediaConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What is read of pictures, documents and recordings that come with messages."""

    max_attachments: Count = 10
    """Most of one message that are read; the others are named to the agent."""

    max_bytes: Count = 10_485_760
    """Largest one that is read, in bytes; also what is fetched by its address."""

    max_image_bytes: Count = 5_000_000
    """Largest picture shown to a model, in bytes."""

    max_document_chars: Count = 50_000
    """Most characters of one document or recording given to the model."""

    max_kept_chars: Count = 4_000
    """Most characters of one document that stay in the conversation afterwards."""

    timeout: Seconds = 60.0
    """Seconds to read one: fetching, transcribing, taking apart."""

    voice_line: VoiceLine = "[Voice]: {words}"
    """How the model is told a recording, with `{words}` for what was said."""

    transcriber: TranscriberConfig | None = None
    """Who writes down recordings; unset: nobody, and people are told so."""

    speaker: SpeakerConfig | None = None
    """Who speaks texts for clients of the web channel; unset: nobody, and they are told
    so."""
