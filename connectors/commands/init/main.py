"""`callboard init`: a few questions, a model that was tried, a file with comments.

The command writes all of its files or none: it writes them into a temporary folder
beside their places, checks them there, and then moves them. Whoever breaks off leaves
nothing behind.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click
import msgspec

from connectors.commands import USUAL_NAME, shipped_settings, tell_problems
from connectors.commands.common.output import is_for_program, say, wrapped
from connectors.commands.common.running import run_interruptible
from connectors.commands.init.choices import (
    EMBEDDED,
    HTTP,
    PAGE,
    SCRIPT,
    TEMPLATES,
    TERMINAL,
    SettingsPlan,
    connector_kinds,
    example_block,
    is_called,
    lacking,
    owner_line,
    persona_text,
    providers,
    settings_text,
    usable_keys,
)
from connectors.commands.init.questions import (
    USUAL_ADDRESS,
    ChosenModel,
    CommandLine,
    FoundSetup,
    Questions,
    find_models,
)
from connectors.settings.load import load_app
from runtime.errors import SettingsError

PREFIX = ".callboard-init-"
PRIVATE, OPEN = 0o600, 0o644
PRIVATE_FOLDER, OPEN_FOLDER = 0o700, 0o755


class NewFile(msgspec.Struct, frozen=True):
    """One file to make."""

    name: str
    """Its path, from the folder of the settings on."""

    text: str
    is_secret: bool = False


@contextmanager
def staged(
    folder: Path, files: Iterable[NewFile], beside: Iterable[str] = ()
) -> Generator[Path]:
    """Write files into a folder of their own, which is gone when the block ends.

    Args:
        folder: beside whose files; it is made if it is not there, and is gone again
            if it stays empty.
        beside: what is in the folder already and can be read here as well.
    """
    made = make_folders(folder)
    try:
        place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
        try:
            for file in files:
                write(place / file.name, file)
            for name in beside:
                link(folder / name, place / name)
            yield place
        finally:
            shutil.rmtree(place)
    finally:
        remove_empty(made)


def link(source: Path, target: Path) -> None:
    """Link an existing file into the folder, so that it is read there, too."""
    if source.exists() and not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source.absolute())


def write(path: Path, file: NewFile) -> None:
    """Write one file and flush it to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = PRIVATE if file.is_secret else OPEN
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(number, "w", encoding="utf-8") as opened:
        opened.write(file.text)
        opened.flush()
        os.fsync(number)


def place(
    source: Path, folder: Path, files: Iterable[NewFile], *, replaces: frozenset[str]
) -> None:
    """Move files to where they belong, in order; if one fails, none has come.

    Args:
        files: which; the settings last.
        replaces: names of those that may take the place of another.

    Raises:
        OSError: one cannot be moved; FileExistsError: it may not replace another.
    """
    done: list[Path] = []
    try:
        for file in files:
            target = folder / file.name
            mode = PRIVATE_FOLDER if file.is_secret else OPEN_FOLDER
            done += make_folders(target.parent, mode)
            if file.name in replaces:
                (source / file.name).replace(target)
            else:
                move_new(source / file.name, target)
                done.append(target)
    except BaseException:  # Ctrl-C, too, leaves nothing behind
        undo(done)
        raise


def move_new(source: Path, target: Path) -> None:
    """Move a file to where there is none.

    Raises:
        FileExistsError: there is one.
    """
    try:
        target.hardlink_to(source)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems know no links; there two at the same moment may meet.
        if target.exists():
            raise FileExistsError(17, "is there already", str(target)) from None
        source.replace(target)


def make_folders(folder: Path, mode: int = OPEN_FOLDER) -> list[Path]:
    """Make a folder, and those above it that are not there; give those made."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=mode)
    return list(reversed(missing))


def undo(done: list[Path]) -> None:
    """Remove the files that were made."""
    for path in reversed(done):
        if path.is_dir():
            remove_empty([path])
        else:
            path.unlink(missing_ok=True)


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders that hold nothing, the innermost first."""
    for each in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        with suppress(OSError):
            each.rmdir()


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
@click.option(
    "--agent", metavar="NAMES", help="What agents are called: anna, or anna,ben."
)
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
    if is_for_program():
        if options["asks"]:
            raise click.UsageError("--json cannot ask: give --yes, or nothing")
        options["asks"] = False
    if options["asks"] is None:
        options["asks"] = sys.stdin is not None and sys.stdin.isatty()
    given = msgspec.convert(options, CommandLine)
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


def look_around(given: CommandLine) -> FoundSetup:
    """Find keys, models and what there is to choose from."""
    shipped = shipped_settings()
    known = providers(shipped)
    keys, useless = usable_keys(known, os.environ)
    return FoundSetup(
        known=known,
        keys=keys,
        useless=tuple(useless),
        ollama=run_interruptible(find_models, given.ollama),
        kinds=connector_kinds(shipped),
    )


def write_all(
    given: CommandLine, plan: SettingsPlan, chosen: ChosenModel
) -> tuple[list[NewFile], dict[str, str]]:
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
    folders = (f"agents/{name}" for name, _ in agents_of(plan))
    beside = (*folders, SCRIPT, *key_file(plan))
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
    made = [*others, NewFile(USUAL_NAME, text)]
    replaces = frozenset({USUAL_NAME} if given.force else ())
    with staged(folder, made) as source:
        try:
            place(source, folder, made, replaces=replaces)
        except FileExistsError as error:
            text = f"{error.filename2 or error.filename} was made meanwhile"
            raise click.ClickException(f"{text}; nothing was written") from error
    return made, why


def other_files(
    shipped: Path, folder: Path, plan: SettingsPlan, chosen: ChosenModel
) -> Iterator[NewFile]:
    """Give the files beside the settings; those that are there stay as they are."""
    templates = shipped / TEMPLATE_FOLDER
    for name, template in agents_of(plan):
        home = f"agents/{name}"
        if any((folder / home).glob("*.md")):
            continue
        for file in sorted((templates / template).glob("*.md")):
            text = persona_text(file.read_text(encoding="utf-8"), name)
            yield NewFile(f"{home}/{file.name}", text)
    if plan.choice.provider.name == EMBEDDED and not (folder / SCRIPT).exists():
        yield NewFile(SCRIPT, (templates / SCRIPT).read_text(encoding="utf-8"))
    if chosen.typed and chosen.secret and plan.choice.key:
        secret = f"{chosen.secret.reveal()}\n"
        yield NewFile(plan.choice.key.place, secret, is_secret=True)


def agents_of(plan: SettingsPlan) -> tuple[tuple[str, str], ...]:
    """Name all agents with their templates, the first to be asked first."""
    return ((plan.agent, plan.template), *plan.others)


def key_file(plan: SettingsPlan) -> tuple[str, ...]:
    """Name the key's file if it stands below the settings."""
    key = plan.choice.key
    is_here = (
        key is not None and key.source == "file" and not Path(key.place).is_absolute()
    )
    return (key.place,) if key is not None and is_here else ()


def complaint_about(
    folder: Path, text: str, others: list[NewFile], beside: tuple[str, ...]
) -> str:
    """Load settings as they will be; give what is wrong with them, if anything."""
    with staged(folder, [*others, NewFile(USUAL_NAME, text)], beside) as place:
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


def tell_end(
    given: CommandLine, plan: SettingsPlan, made: list[NewFile], why: dict[str, str]
) -> None:
    """Say what was written, what is still missing, and the next two commands."""
    files = ", ".join(str(given.folder / each.name) for each in made)
    say(wrapped(f"Wrote {files}.", sys.stdout))
    for kind, reason in why.items():
        say(f"{kind} waits as comments in {given.folder / USUAL_NAME}: {reason}")
    for warning in load_app(given.folder / USUAL_NAME, os.environ).warnings:
        tell_problems(warning, "warning: ")
    is_here = given.folder.resolve() == Path.cwd()
    more = "" if is_here else f" --config {given.folder / USUAL_NAME}"
    serves = any(kind not in {TERMINAL, *why} for kind in plan.people)
    kept = [
        name
        for name, _ in agents_of(plan)
        if not any(file.name.startswith(f"agents/{name}/") for file in made)
    ]
    if kept:
        folders = ", ".join(f"agents/{name}" for name in kept)
        say(f"Left as it was, because it was there: {folders}.")
    say(f"Next: callboard chat{more}")
    rest = ["doctor", *(["serve"] if serves else [])]
    rest += ["login"] if PAGE in plan.people and PAGE not in why else []
    for word in rest:
        say(f"Then: callboard {word}{more}")
