"""`callboard init`: a few questions, a model that was tried, a file with comments."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from connectors.commands import USUAL_NAME, shipped_settings, tell_problems
from connectors.commands.init_choices import (
    EMBEDDED,
    HTTP,
    PAGE,
    TEMPLATES,
    TERMINAL,
    Plan,
    connector_kinds,
    providers,
    usable_keys,
)
from connectors.commands.init_files import Made, place, staged
from connectors.commands.init_ollama import USUAL_ADDRESS, find_models
from connectors.commands.init_questions import Chosen, Given, Questions, Seen
from connectors.commands.init_text import (
    SCRIPT,
    example_block,
    is_called,
    lacking,
    owner_line,
    persona_text,
    settings_text,
)
from connectors.commands.interruptible import run_interruptible
from connectors.commands.printing import say
from connectors.settings import load_app
from runtime.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPLATE_FOLDER = "templates"
MOST_COMPLAINTS = 4
TO_BE_READ = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.command()
@click.option(
    "--folder",
    "-d",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help=f"Where {USUAL_NAME} is to stand. [default: here]",
)
@click.option(
    "--model",
    metavar="PROVIDER[/MODEL]",
    help=f"As in ollama/qwen3 or openai; {EMBEDDED} needs no key and no network.",
)
@click.option("--key-env", metavar="NAME", help="Variable with the provider's key.")
@click.option("--key-file", type=TO_BE_READ, help="File with the provider's key.")
@click.option(
    "--base-url", metavar="URL", help="Another server of that provider's kind."
)
@click.option("--agent", metavar="NAME", help="What the first agent is called.")
@click.option("--template", metavar="NAME", help=f"Who it is: {', '.join(TEMPLATES)}.")
@click.option(
    "--people", metavar="KINDS", help="Where people write, as in terminal,page,discord."
)
@click.option("--matrix-id", metavar="ID", help="The agent's account on Matrix.")
@click.option(
    "--ollama",
    metavar="URL",
    default=USUAL_ADDRESS,
    show_default=True,
    help="Where to look for an Ollama server.",
)
@click.option(
    "--force", is_flag=True, help=f"Write over the {USUAL_NAME} that is there."
)
@click.option(
    "--test/--no-test", default=True, help="Ask the model once. [default: yes]"
)
@click.option(
    "--ask/--yes",
    "asks",
    default=None,
    help="Ask, or take what is usual. [default: ask at a terminal]",
)
def command(**options: object) -> None:
    """Write settings to begin with: at most five questions, none without a terminal.

    Finds keys in the environment (only their names are written down) and models of an
    Ollama server here, asks the chosen model one small question, and writes a
    callboard.toml with comments. Ctrl-C leaves nothing behind.
    """
    if options["asks"] is None:
        options["asks"] = sys.stdin is not None and sys.stdin.isatty()
    given = msgspec.convert(options, Given)
    file = given.folder / USUAL_NAME
    if os.path.lexists(file) and not given.force:
        raise click.ClickException(
            f"{file} is there already, and stays as it is\n"
            "  hint: --force writes over it, --folder DIR puts a new one elsewhere"
        )
    check_place(given.folder)
    seen = look_around(given)
    plan, chosen = Questions(given, seen).plan()
    made, why = write_all(given, plan, chosen)
    tell_end(given, plan, made, why)


def check_place(folder: Path) -> None:
    """Refuse a folder that cannot be written to, before anybody is asked.

    Raises:
        click.ClickException: it is one.
    """
    nearest = next(
        each for each in (folder, *folder.absolute().parents) if each.exists()
    )
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        text = f"{nearest} is no folder that you may write to"
        raise click.ClickException(f"{text}\n  hint: name another one with --folder")


def look_around(given: Given) -> Seen:
    """Find keys, models and what there is to choose from."""
    shipped = shipped_settings()
    known = providers(shipped)
    keys, useless = usable_keys(known, os.environ)
    return Seen(
        known=known,
        keys=keys,
        useless=tuple(useless),
        ollama=run_interruptible(find_models, given.ollama),
        kinds=connector_kinds(shipped),
    )


def write_all(
    given: Given, plan: Plan, chosen: Chosen
) -> tuple[list[Made], dict[str, str]]:
    """Write all files, check them, and move them to where they belong.

    Returns:
        What was written; and platforms that are left out for now, with the reason.

    Raises:
        click.ClickException: the settings would not be right, or are there by now.
    """
    shipped, folder = shipped_settings(), given.folder
    examples = {
        kind: (shipped / f"{kind}.toml").read_text(encoding="utf-8")
        for kind in plan.people
        if kind not in {TERMINAL, HTTP}
    }
    if HTTP not in plan.people and any(map(is_called, examples.values())):
        plan = msgspec.structs.replace(plan, people=(HTTP, *plan.people))
    blocks = {kind: example_block(examples[kind], kind, plan) for kind in examples}
    owners = tuple(filter(None, (owner_line(text, plan) for text in examples.values())))
    others = list(other_files(shipped, folder, plan, chosen))
    beside = (f"agents/{plan.agent}", SCRIPT, *key_file(plan))
    why: dict[str, str] = {}
    for kind, block in blocks.items():
        rest = {each: "" for each in blocks if each != kind}
        alone = settings_text(plan, blocks, rest)
        wrong = complaint_about(folder, alone, others, beside)
        if reason := "; ".join(filter(None, (lacking(block), wrong))):
            why[kind] = reason
    if set(plan.people) <= why.keys():
        # Somebody must be able to write, until the platforms' tables are whole.
        people = (TERMINAL, *plan.people)
        plan = msgspec.structs.replace(plan, people=people)
    text = settings_text(plan, blocks, why, owners)
    if complaint := complaint_about(folder, text, others, beside):
        raise click.ClickException(f"{complaint}\nNothing was written.")
    made = [*others, Made(USUAL_NAME, text)]
    replaces = frozenset({USUAL_NAME} if given.force else ())
    with staged(folder, made) as source:
        try:
            place(source, folder, made, replaces=replaces)
        except FileExistsError as error:
            text = f"{error.filename2 or error.filename} was made meanwhile"
            raise click.ClickException(f"{text}; nothing was written") from error
    return made, why


def other_files(
    shipped: Path, folder: Path, plan: Plan, chosen: Chosen
) -> Iterator[Made]:
    """Give the files beside the settings; those that are there stay as they are."""
    templates, home = shipped / TEMPLATE_FOLDER, f"agents/{plan.agent}"
    if not any((folder / home).glob("*.md")):
        for file in sorted((templates / plan.template).glob("*.md")):
            text = persona_text(file.read_text(encoding="utf-8"), plan.agent)
            yield Made(f"{home}/{file.name}", text)
    if plan.choice.provider.name == EMBEDDED and not (folder / SCRIPT).exists():
        yield Made(SCRIPT, (templates / SCRIPT).read_text(encoding="utf-8"))
    if chosen.typed and chosen.secret and plan.choice.key:
        secret = f"{chosen.secret.reveal()}\n"
        yield Made(plan.choice.key.place, secret, is_secret=True)


def key_file(plan: Plan) -> tuple[str, ...]:
    """Name the key's file if it stands below the settings."""
    key = plan.choice.key
    is_here = (
        key is not None and key.source == "file" and not Path(key.place).is_absolute()
    )
    return (key.place,) if key is not None and is_here else ()


def complaint_about(
    folder: Path, text: str, others: list[Made], beside: tuple[str, ...]
) -> str:
    """Load settings as they will be; give what is wrong with them, if anything.

    Args:
        folder: where they will stand.
        text: what they say.
        others: files that will stand beside them.
        beside: what stands there already.
    """
    with staged(folder, [*others, Made(USUAL_NAME, text)], beside) as place:
        try:
            load_app(place / USUAL_NAME, os.environ)
        except SettingsError as error:
            texts = dict.fromkeys(each.text for each in error.problems)
            hint = error.problems[0].hint
            told = "; ".join(
                [*tuple(texts)[:MOST_COMPLAINTS], *([hint] if hint else [])]
            )
            return told.replace(f"{place}{os.sep}", "")
    return ""


def tell_end(given: Given, plan: Plan, made: list[Made], why: dict[str, str]) -> None:
    """Say what was written, what is still missing, and the next two commands."""
    say(f"Wrote {', '.join(str(given.folder / each.name) for each in made)}.")
    for kind, reason in why.items():
        say(f"{kind} waits as comments in {given.folder / USUAL_NAME}: {reason}")
    for warning in load_app(given.folder / USUAL_NAME, os.environ).warnings:
        tell_problems(warning, "warning: ")
    is_here = given.folder.resolve() == Path.cwd()
    more = "" if is_here else f" --config {given.folder / USUAL_NAME}"
    serves = any(kind not in {TERMINAL, *why} for kind in plan.people)
    say("Next:")
    say(f"  callboard chat{more}")
    say(f"  callboard {'serve' if serves else 'doctor'}{more}")
    if PAGE in plan.people and PAGE not in why:
        say(f"  callboard login{more}")
