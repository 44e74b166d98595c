"""Checks who may write, and to whom; and the languages and memories of people.

A slip here shuts people out or lets them in. A contradiction is a mistake; settings
that shut everybody out are warned of, with what to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from actors.config.access import AccessConfig
from actors.rules.text.globs import globs, is_wild
from actors.rules.text.translations import SOURCE
from connectors.chat.platforms import platform_of, setting_of
from connectors.config.app import AppConfig, ConnectorConfig
from connectors.config.checks import Way, check_address, unknown
from connectors.config.embedders import HASHING, OFF, OllamaEmbedderConfig
from connectors.config.shipped import shipped_settings
from runtime.config.loader import Complaint, close_to

PATTERNS = ("allowed", "allowed_roles", "denied", "allowed_chats")
MOST_CHARS = 256


def access_of(connector: ConnectorConfig) -> AccessConfig | None:
    """Say who may write by a connector; None: whoever its edge lets in."""
    access: AccessConfig | None = setting_of(connector, "access", None)
    if access is None and platform_of(connector).is_public:
        return AccessConfig()
    return access


def owners(config: AppConfig) -> frozenset[str]:
    """Say who runs this company: whom the settings list, and who may use its page."""
    let_in = {
        f"{name}/{person}"
        for name, connector in config.connectors.items()
        for person in platform_of(connector).owners(connector)
    }
    return frozenset(let_in.union(config.owners))


def approvers(config: AppConfig) -> frozenset[str]:
    """Say who may approve any tool call: owners, and whoever sits at the terminal."""
    further = {
        f"{name}/{person}"
        for name, connector in config.connectors.items()
        for person in platform_of(connector).approvers(connector)
    }
    return owners(config).union(further)


def check_access(app: AppConfig) -> Iterator[Complaint]:
    """Check who may write by each connector, and who may use which agent."""
    for name, connector in app.connectors.items():
        access = access_of(connector)
        if access is not None:
            way: Way = ("connectors", name, "access")
            owners = owners_of(name, app)
            can_pair = platform_of(connector).is_public
            yield from check_patterns(way, name, access)
            yield from check_denied(way, access, owners)
            yield from check_people(way, access)
            yield from check_nobody(way, access, owners, can_pair=can_pair)
            yield from check_groups(way, access)
    yield from check_agent_access(app)


def owners_of(connector: str, app: AppConfig) -> frozenset[str]:
    """Give the ids of the owners who write by a connector."""
    parted = (each.partition("/") for each in app.owners)
    return frozenset(sender for name, _, sender in parted if name == connector)


def check_patterns(way: Way, name: str, access: AccessConfig) -> Iterator[Complaint]:
    """Complain of patterns that can fit nobody as they are written."""
    for field in PATTERNS:
        given: tuple[str, ...] = getattr(access, field)
        for index, pattern in enumerate(given):
            place = (*way, field, index)
            if not pattern.strip() or pattern != pattern.strip():
                text = f"{pattern!r} fits nobody"
                yield Complaint(
                    place, text, "write an id, or a pattern, without blanks"
                )
            elif len(pattern) > MOST_CHARS:
                text = f"this pattern has {len(pattern)} characters"
                yield Complaint(place, text, f"{MOST_CHARS} are enough for any id")
            elif pattern.startswith(f"{name}/"):
                text = f"{pattern!r} names the connector, which is {name!r} anyway"
                hint = f"write {pattern.removeprefix(name + '/')!r}"
                yield Complaint(place, text, hint)
            elif pattern in given[:index]:
                yield Complaint(place, f"{pattern!r} stands here twice", "take one out")


def check_denied(
    way: Way, access: AccessConfig, owners: frozenset[str]
) -> Iterator[Complaint]:
    """Complain of denying whom another setting lets in, or everybody."""
    for index, pattern in enumerate(access.denied):
        place = (*way, "denied", index)
        if pattern in access.allowed:
            text = f"{pattern!r} is both allowed and denied"
            yield Complaint(place, text, "take it out of one of the two")
        elif pattern and set(pattern) == {"*"}:
            text = "everybody is denied"
            hint = 'take it out; people = "listed" lets in nobody who is not listed'
            yield Complaint(place, text, hint)
        elif denied := [each for each in sorted(owners) if globs((pattern,)).fit(each)]:
            text = f"{pattern!r} denies {denied[0]!r}, an owner, who may always write"
            yield Complaint(place, text, "take it out, or the owner")


def check_people(way: Way, access: AccessConfig) -> Iterator[Complaint]:
    """Complain of what means nothing beside another setting."""
    if access.code_again_after > access.code_for:
        text = "a code is told again only after it has ceased to hold"
        hint = f"at most {access.code_for:g}, as code_for"
        yield Complaint((*way, "code_again_after"), text, hint)
    for field in ("allowed", "allowed_roles"):
        if access.people == "anyone" and getattr(access, field):
            text = f'{field} means nothing where people = "anyone"'
            yield Complaint((*way, field), text, 'take it out, or people = "listed"')


def check_nobody(
    way: Way, access: AccessConfig, owners: frozenset[str], *, can_pair: bool
) -> Iterator[Complaint]:
    """Warn if nobody may write, and refuse codes where nobody can be told one."""
    place = (*way, "people")
    if access.people == "pairing" and not can_pair:
        hint = 'list them (people = "listed"), or give each a key of its own'
        yield Complaint(place, "nobody can be told a code over HTTP", hint)
    elif access.people == "listed" and is_nobody(access):
        who = "nobody but owners" if owners else "nobody"
        text = f'{who} may write here: people = "listed", and nobody is listed'
        codes = ' or people = "pairing" to let people in by a code,' * can_pair
        hint = f'set allowed = ["…"],{codes} or people = "anyone"'
        yield Complaint(place, text, hint, is_warning=True)


def is_nobody(access: AccessConfig) -> bool:
    """Whether no list lets anybody in, in no chat."""
    is_open = access.groups == "handle" and access.group_people == "everyone"
    return not (access.allowed or access.allowed_roles or is_open)


def check_groups(way: Way, access: AccessConfig) -> Iterator[Complaint]:
    """Complain of what is said of groups that are not handled."""
    if access.groups == "drop":
        if access.allowed_chats != ("*",):
            text = 'allowed_chats means nothing where groups = "drop"'
            yield Complaint((*way, "allowed_chats"), text, 'groups = "handle"')
        if access.group_people == "everyone":
            text = 'group_people means nothing where groups = "drop"'
            yield Complaint((*way, "group_people"), text, 'groups = "handle"')
    elif not access.allowed_chats:
        text = "no group is allowed"
        yield Complaint((*way, "allowed_chats"), text, 'write groups = "drop"')


def check_agent_access(app: AppConfig) -> Iterator[Complaint]:
    """Check that each rule can fit something, and is not hidden by one before."""
    everything: list[int] = []
    for index, rule in enumerate(app.access):
        way: Way = ("access", index)
        if everything:
            text = f"this is never asked: rule {everything[0] + 1} fits everything"
            yield Complaint(way, text, "put it before that one, or take it out")
        yield from check_named((*way, "agent"), rule.agent, app.agents)
        yield from check_named((*way, "connector"), rule.connector, app.connectors)
        for field in ("chat", "sender", "role"):
            if not getattr(rule, field).strip():
                text = f"an empty {field} fits nothing"
                yield Complaint((*way, field), text, 'write "*" for any')
        if {rule.agent, rule.connector, rule.chat, rule.sender, rule.role} == {"*"}:
            everything.append(index)


def check_named(way: Way, pattern: str, known: Collection[str]) -> Iterator[Complaint]:
    """Complain of a pattern that fits none of the names there are."""
    what = str(way[-1])
    if not is_wild(pattern):
        yield from unknown(way, what, pattern, known)
    elif not any(fnmatchcase(each, pattern) for each in known):
        yield Complaint(way, f"no {what} fits {pattern!r}", close_to(pattern, known))


CATALOGUES = "locale/*/LC_MESSAGES/callboard.po"


def check_languages(app: AppConfig) -> Iterator[Complaint]:
    """Check the language people are spoken to in, and what they may choose."""
    found = shipped_settings().glob(CATALOGUES)
    spoken = sorted({SOURCE, *(path.parent.parent.name for path in found)})
    if app.people.language not in spoken:
        text = f"there is no translation into {app.people.language!r}"
        yield Complaint(("people", "language"), text, f"known: {', '.join(spoken)}")
    for index, pattern in enumerate(app.commands.models):
        if pattern != "*" and not any(fnmatchcase(x, pattern) for x in app.models):
            text = f"no model fits {pattern!r}"
            hint = close_to(pattern, app.models)
            yield Complaint(("commands", "models", index), text, hint)


def check_embedders(app: AppConfig) -> Iterator[Complaint]:
    """Check how embedders are called and reached."""
    for name, embedder in app.embedders.items():
        if name in {HASHING, OFF}:
            text = f"{name!r} already means something as memory.embedder"
            yield Complaint(("embedders", name), text, "give it another name")
        is_ollama = isinstance(embedder, OllamaEmbedderConfig)
        yield from check_address(
            ("embedders", name, "base_url"),
            embedder.base_url,
            has_key=embedder.api_key is not None,
            example=OllamaEmbedderConfig().base_url
            if is_ollama
            else "https://api.openai.com/v1",
        )


def is_other_than_folder(path: Path) -> bool:
    """Whether something else has the name; not if nobody may look: writing tells."""
    try:
        return path.exists() and not path.is_dir()
    except OSError:
        return False


def check_log_folder(folder: str) -> Iterator[Complaint]:
    """Check that daily logs can have their folder."""
    way, hint = ("memory", "folder"), 'name a folder, for example "var/memory"'
    path = Path(folder)
    if not folder.strip():
        yield Complaint(way, "names no folder", hint)
    elif is_other_than_folder(path):
        yield Complaint(way, f"{folder} is no folder", hint)
