"""Loads settings: one TOML file, with what it includes, into a Struct.

Generic: the caller brings the Struct, the environment for secrets and the checks
that need to see several settings together. Either everything fits, or all that
does not is told at once, each with file, line, column and what to do.

The steps: `tree.py` reads text, `positions.py` knows lines, `Fit` holds the tree
against the Struct, `messages.py` finds the words. `Fit` walks the type as
`msgspec.inspect` describes it, because `msgspec` stops at the first mistake and does
not know lines; what passes there, `msgspec` then converts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Generic, TypeGuard, TypeVar

import msgspec
from msgspec import Meta, inspect as shapes

from runtime import secret
from runtime.config import messages as words
from runtime.config.messages import close_to, dotted
from runtime.config.positions import Path as Way
from runtime.config.tree import (
    BEFORE,
    INCLUDE,
    SOURCES,
    FileReader,
    Node,
    Origin,
    beside,
    override,
    variables,
)
from runtime.errors import MisuseError, SettingsError, SettingsListError
from runtime.secret import Secret

__all__ = [
    "INCLUDE",
    "Check",
    "Complaint",
    "LoadOptions",
    "Origin",
    "Prepare",
    "Settings",
    "close_to",
    "decode",
    "load",
]

WRONG = object()
"""Stands in for a value that was complained about."""

LARGEST_INTEGER = 2**63 - 1

IS_PATH = {"is_path": True}
WrittenPath = Annotated[str, Meta(extra=IS_PATH)]
"""A path of something that the program writes. Absolute once it is loaded: a relative
one starts where `LoadOptions.start` says, also one that is not set; empty stays so."""

IS_COMMAND = {"is_command": True}
CommandText = Annotated[str, Meta(extra=IS_COMMAND)]
"""One word of a command that runs elsewhere. If it names a file, as seen from the
settings file's folder, it is that file's whole path once it is loaded."""

IS_GIVEN = {"is_given": True}
GivenSecret = Annotated[secret.Secret, Meta(extra=IS_GIVEN)]
"""A secret that somebody else made and checks; see `runtime.secret.checked`."""

Start = Callable[[Path], Path]
"""Gives the folder at which paths of written things start, by a settings file's own."""


Retired = Mapping[str, Mapping[str, str]]
"""By the name of a Struct and of a key that it had once, why that is gone."""


def is_written_path(kind: shapes.Type) -> bool:
    """Tell whether a type is `WrittenPath`, perhaps with bounds of its own."""
    return is_marked(kind, IS_PATH)


def is_marked(kind: shapes.Type, mark: dict[str, bool]) -> bool:
    """Tell whether a type has a mark of ours."""
    while isinstance(kind, shapes.Metadata):
        # Why ignored: msgspec says of `extra` only that it is a dict.
        if kind.extra == mark:  # pyright: ignore[reportUnknownMemberType]
            return True
        kind = kind.type
    return False


class Fit(msgspec.Struct):
    """One pass of a type over a tree, and what came of it.

    Args:
        environment: where `{ env = "…" }` looks.
        file: the settings file itself; where those start that no file sets.
        needs_secrets: whether a secret whose source is not there is a mistake.
    """

    environment: Mapping[str, str]
    start: Start = Path
    file: str = ""
    needs_secrets: bool = True
    retired: Retired = msgspec.field(default_factory=dict[str, Mapping[str, str]])
    unset: list[SettingsError] = msgspec.field(default_factory=list["SettingsError"])
    """Secrets whose source is not there, if none is needed."""

    errors: list[SettingsError] = msgspec.field(default_factory=list["SettingsError"])
    warnings: list[SettingsError] = msgspec.field(default_factory=list["SettingsError"])
    origins: dict[Way, Origin] = msgspec.field(default_factory=dict["Way", "Origin"])
    secrets: list[secret.Secret] = msgspec.field(default_factory=list[secret.Secret])
    secret_files: list[Path] = msgspec.field(default_factory=list[Path])
    defaults: dict[Way, object] = msgspec.field(default_factory=dict["Way", object])
    """What a setting is when nobody sets it: the best example there is."""

    settings: shapes.StructType | None = None
    """The type of all settings, as soon as they are looked at."""

    told: set[int] = msgspec.field(default_factory=set[int])
    """Identities of nodes complained about: an inherited one is met many times."""

    def complain(self, node: Node, origin: Origin, text: str, hint: str) -> object:
        """Note one mistake, once; give back the stand-in for the value."""
        if id(node) not in self.told:
            self.told.add(id(node))
            self.errors.append(origin.error(text, hint))
        return WRONG

    def leave_out(self, node: Node, way: Way, why: str) -> None:
        """Warn, once, of a key that has no effect any more."""
        if id(node) not in self.told:
            self.told.add(id(node))
            text = f"{words.dotted(way)} has no effect any more: {why}"
            self.warnings.append(node.key.error(text, "take it out"))

    def value(self, node: Node, kind: shapes.Type, way: Way) -> object:
        """Hold one value against its type.

        Returns:
            Plain values for `msgspec.convert`, with secrets and paths made.
        """
        self.origins[way] = node.value
        match words.bare(kind):
            case shapes.StructType() as struct:
                return self.struct(node, struct, way)
            case shapes.UnionType(types=choices):
                return self.choice(node, choices, way)
            case shapes.DictType(key_type=key_type, value_type=value_type):
                return self.mapping(node, (key_type, value_type), way)
            case shapes.VarTupleType() as items:
                return self.array(node, items, way)
            case shapes.CustomType(cls=cls) if cls in SPECIAL:
                is_given = is_marked(kind, IS_GIVEN)
                make = Fit.given_secret if is_given else SPECIAL[cls]
                return make(self, node, way)
            case _:
                return self.leaf(node, kind, way)

    def table(self, node: Node, way: Way) -> dict[str, Node] | None:
        """Give the keys of what must be a table."""
        table = node.table()
        if table is None:
            name = words.dotted(way)
            self.complain(
                node,
                node.value,
                f"{name} must be a table, not {words.given(node)}",
                f"for example: [{name}] on its own line, its keys below",
            )
        return table

    def struct(self, node: Node, kind: shapes.StructType, way: Way) -> object:
        """Hold a table against a Struct: unknown, missing and wrong keys."""
        table = self.table(node, way)
        if table is None:
            return WRONG
        fields = {item.encode_name: item for item in kind.fields}
        self.settings = self.settings or kind
        # The loader has taken `include` out; a misspelt one must be reported.
        known = [*fields, kind.tag_field if way else INCLUDE]
        retired = self.retired.get(kind.cls.__name__, {})
        plain: dict[str, object] = {}
        for key, child in table.items():
            if key in fields:
                self.defaults[*way, key] = fields[key].default
                plain[key] = self.value(child, fields[key].type, (*way, key))
            elif key == kind.tag_field:
                plain[key] = child.content
                self.origins[*way, key] = child.value
            elif why := retired.get(key):
                self.leave_out(child, (*way, key), why)
            else:
                place = f"in {words.dotted(way)}" if way else "at the top"
                names = (part for part in way if isinstance(part, str))
                see = f"callboard config show {'.'.join(names)}".strip()
                hint = words.place_of(key, self.settings)
                hint += words.close_to(key, filter(None, known), see)
                self.complain(child, child.key, f"unknown key {key!r} {place}", hint)
        missing = [item for item in fields.values() if item.required]
        for item in missing:
            if item.encode_name not in table:
                # Why: not `complain`, since one table may lack several keys.
                text = f"{words.dotted(way) or 'the file'} lacks {item.encode_name!r}"
                hint = words.line_for(way, item.encode_name, item.type)
                self.errors.append(node.value.error(text, hint))
        return {**self.unset_paths(fields.values(), table), **plain}

    def unset_paths(
        self, fields: Iterable[shapes.Field], table: Mapping[str, Node]
    ) -> dict[str, object]:
        """Give the paths of written things that a table, or one in it, does not set."""
        plain: dict[str, object] = {}
        for item in fields:
            kind = words.bare(item.type)
            if item.encode_name in table:
                continue
            if is_written_path(item.type):
                plain[item.encode_name] = self.from_start(str(item.default), self.file)
            elif isinstance(kind, shapes.StructType) and not item.required:
                inner = self.unset_paths(kind.fields, {})
                plain |= {item.encode_name: inner} if inner else {}
        return plain

    def choice(self, node: Node, choices: tuple[shapes.Type, ...], way: Way) -> object:
        """Hold a value against a type or nothing, or against Structs with a tag."""
        # TOML cannot write None, so what is written is held against the rest.
        kinds = [item for item in choices if not isinstance(item, shapes.NoneType)]
        if len(kinds) == 1:
            return self.value(node, kinds[0], way)
        tagged = {
            str(item.tag): item for item in kinds if isinstance(item, shapes.StructType)
        }
        table = self.table(node, way)
        if table is None:
            return WRONG
        field_name = next(item.tag_field or "" for item in tagged.values())
        if field_name not in table:
            text = f"{words.dotted(way)} lacks {field_name!r}"
            return self.complain(node, node.value, text, words.close_to("", tagged))
        tag = table[field_name]
        if not isinstance(tag.content, str) or tag.content not in tagged:
            text = f"{words.dotted(way)}: there is no {field_name} {words.shown(tag)}"
            return self.complain(
                tag, tag.value, text, words.close_to(str(tag.content), tagged)
            )
        return self.struct(node, tagged[tag.content], way)

    def mapping(
        self, node: Node, kinds: tuple[shapes.Type, shapes.Type], way: Way
    ) -> object:
        """Hold a table of freely named things against its key and value types."""
        key_type, value_type = kinds
        plain: dict[str, object] = {}
        for key, child in (self.table(node, way) or {}).items():
            if not accepts(key_type, key):
                wanted = words.wanted(key_type)
                text = f"the name {key!r} in [{words.dotted(way)}] is not allowed"
                self.complain(child, child.key, text, f"it must be {wanted}")
            plain[key] = self.value(child, value_type, (*way, key))
        return plain

    def array(self, node: Node, kind: shapes.VarTupleType, way: Way) -> object:
        """Hold an array against its least length and the type of its items."""
        items = node.items()
        if items is None or len(items) < (kind.min_length or 0):
            given = words.given(node) if items is None else "an empty one"
            text = f"{words.dotted(way)} must be a list, not {given}"
            example = f"{way[-1]} = [{words.sample(kind.item_type)}]"
            return self.complain(node, node.value, text, f"for example: {example}")
        return [
            self.value(item, kind.item_type, (*way, index))
            for index, item in enumerate(items)
        ]

    def free(self, node: Node, way: Way) -> object:
        """Take what somebody else reads, in whose words it is: whatever JSON has."""
        table, items = node.table(), node.items()
        if table is not None:
            return {key: self.free(each, (*way, key)) for key, each in table.items()}
        if items is not None:
            return [self.free(each, (*way, n)) for n, each in enumerate(items)]
        if isinstance(node.content, str | bool | int | float):
            return node.content
        text = f"{words.dotted(way)} cannot be a date or a time"
        return self.complain(node, node.value, text, 'write it as a text: "…"')

    def leaf(self, node: Node, kind: shapes.Type, way: Way) -> object:
        """Hold a simple value against its type and bounds."""
        if isinstance(words.bare(kind), shapes.AnyType):
            return self.free(node, way)
        if accepts(kind, node.content):
            if isinstance(node.content, str) and is_written_path(kind):
                return self.from_start(node.content, node.value.file)
            if is_marked(kind, IS_COMMAND):
                return whole_path(node)
            return node.content
        text = (
            f"{words.dotted(way)} must be {words.wanted(kind)}, not {words.given(node)}"
        )
        plain = words.bare(kind)
        if isinstance(plain, shapes.LiteralType):
            hint = words.close_to(str(node.content), words.literals(plain))
        else:
            default = self.defaults.get(way)
            is_plain = isinstance(default, (bool, int, float, str)) and default != ""
            example = words.toml(default) if is_plain else words.sample(kind)
            hint = f"for example: {words.example(way[-1], example)}"
        return self.complain(node, node.value, text, hint)

    def from_start(self, text: str, file: str) -> str:
        """Say where a written thing lies that a settings file names; empty stays so."""
        folder = Path(file).parent.absolute()
        # Why only then: a path through links should read as people wrote it.
        folder = self.start(folder.resolve() if ".." in folder.parts else folder)
        is_named = bool(text.strip())
        return str(beside(str(folder / "settings"), text)) if is_named else text

    def path(self, node: Node, way: Way) -> object:
        """Make a path, relative to the file in which it is written."""
        if not isinstance(node.content, str) or not node.content.strip():
            text = f"{words.dotted(way)} must be a path, not {words.given(node)}"
            return self.complain(
                node, node.value, text, f'for example: {way[-1]} = "folder/file"'
            )
        return beside(node.value.file, node.content)

    def open_text(self, node: Node, way: Way) -> object:
        """Take a text as it stands, or fetch the secret that a table names.

        The table may have `before`, a text in the open that the secret follows.
        """
        if isinstance(node.content, str):
            return secret.OpenText(node.content)
        table = node.table()
        if table is None:
            text = f"{words.dotted(way)} must be a text, not {words.given(node)}"
            hint = f'write "text"; if it is a secret: {words.REFERENCE}'
            return self.complain(node, node.value, text, hint)
        before = table.get(BEFORE)
        if before is not None and not isinstance(before.content, str):
            text = f"{words.dotted(way)}.{BEFORE} must be a text"
            hint = f'for example: {{ {BEFORE} = "Bearer ", env = "NAME" }}'
            return self.complain(before, before.value, text, hint)
        rest = {key: each for key, each in table.items() if key != BEFORE}
        found = self.secret(Node(rest, node.key, node.value), way, is_given=True)
        if not isinstance(found, secret.Secret):
            return WRONG
        return secret.OpenText(str(before.content) if before else "", found)

    def given_secret(self, node: Node, way: Way) -> object:
        """Fetch a secret that somebody else made and checks."""
        return self.secret(node, way, is_given=True)

    def secret(self, node: Node, way: Way, *, is_given: bool = False) -> object:
        """Fetch a secret from where the reference says."""
        name, hint = words.dotted(way), words.REFERENCE
        table = node.table()
        if table is None:
            # Invariant: the text never shows the value; it may be a real secret.
            text = f"{name} must name a secret's source, never hold the secret itself"
            return self.complain(node, node.value, text, f"write {hint}")
        odd = [key for key in table if key not in SOURCES]
        for key in odd:
            text = f"unknown key {key!r} in {name}"
            near = words.close_to(key, sorted(SOURCES))
            self.complain(table[key], table[key].key, text, near)
        sources = [key for key in sorted(SOURCES) if key in table]
        if odd:
            return WRONG
        if len(sources) != 1:
            text = f"{name} must have one source"
            return self.complain(node, node.value, text, f"write {hint}")
        source = table[sources[0]]
        if not isinstance(source.content, str) or not source.content:
            text = f"{name}.{sources[0]} must be a text, not {words.given(source)}"
            return self.complain(source, source.value, text, f"write {hint}")
        return self.fetch(source, sources[0], way, is_given=is_given)

    def fetch(self, source: Node, kind: str, way: Way, *, is_given: bool) -> object:
        """Read the secret; it is wrong where it is named."""
        where = str(source.content)
        try:
            if kind == "env":
                found = secret.from_environment(
                    where, self.environment, is_given=is_given
                )
            else:
                path = beside(source.value.file, where)
                found = secret.from_file(path, is_given=is_given)
                self.secret_files.append(path)
                self.warn_of_others(path, source)
        except secret.SecretSourceError as error:
            text = f"{words.dotted(way)}: {error.text}"
            if error.is_absent and not self.needs_secrets:
                self.unset.append(source.value.error(text, error.hint))
                return secret.UnsetSecret(self.unset[-1])
            return self.complain(source, source.value, text, error.hint)
        if len(found.reveal()) >= secret.SHORTEST_SECRET:
            self.secrets.append(found)  # a shorter one would blot out words in logs
        return found

    def warn_of_others(self, path: Path, source: Node) -> None:
        """Warn of a secret's file that other users of the machine may read."""
        if secret.open_to_others(path):
            text = f"other users of this machine may read or write {path}"
            self.warnings.append(source.value.error(text, f"chmod 600 {path}"))


SPECIAL: dict[type, Callable[[Fit, Node, Way], object]] = {
    Path: Fit.path,
    secret.Secret: Fit.secret,
    secret.OpenText: Fit.open_text,
}
"""What TOML has no word for, and who makes it."""


def whole_path(node: Node) -> str:
    """Give the whole path of a file that a text names; any other text as it is."""
    text = str(node.content)
    path = beside(node.value.file, text).absolute()
    try:
        return str(path) if path.is_file() else text
    except OSError:  # too long for a path, or in a folder that is closed to us
        return text


def accepts(kind: shapes.Type, value: object) -> bool:
    """Tell whether a simple value fits a simple type and its bounds.

    Raises:
        MisuseError: the schema uses a type that settings cannot have.
    """
    match words.bare(kind):
        case shapes.BoolType():
            return isinstance(value, bool)
        case shapes.IntType() as number:
            return is_integer(value) and within(number, value)
        case shapes.FloatType() as number:
            return is_number(value) and within(number, value)
        case shapes.StrType() as text:
            return isinstance(value, str) and text_fits(text, value)
        case shapes.LiteralType(values=values):
            return isinstance(value, str) and value in values
        case other:
            raise MisuseError(f"settings cannot have the type {other}")


def is_integer(value: object) -> TypeGuard[int]:
    """Tell whether a value is a whole number of 64 bits; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return abs(value) <= LARGEST_INTEGER


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether a value is a number; the infinite, and what is none, are not."""
    return is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def within(number: shapes.IntType | shapes.FloatType, value: float) -> bool:
    """Tell whether a number lies inside its type's bounds."""
    return (
        (number.gt is None or value > number.gt)
        and (number.ge is None or value >= number.ge)
        and (number.lt is None or value < number.lt)
        and (number.le is None or value <= number.le)
    )


def text_fits(text: shapes.StrType, value: str) -> bool:
    """Tell whether a text has the right length and, as a whole, the right form."""
    return (
        len(value) >= (text.min_length or 0)
        and (text.max_length is None or len(value) <= text.max_length)
        and (text.pattern is None or re.fullmatch(text.pattern, value) is not None)
    )


Config = TypeVar("Config", bound=msgspec.Struct)


class Complaint(msgspec.Struct, frozen=True):
    """Something that a check across settings does not like."""

    way: Way
    """Where: keys of tables and, from 0, places in lists."""

    text: str
    hint: str = ""
    is_warning: bool = False
    """True: tell people, but go on."""


Check = Callable[[Config], Iterable[Complaint]]
"""Looks at settings whose shape is right; names what does not go together."""

Prepare = Callable[["Node"], "Node"]
"""Adds to a tree what stands elsewhere; raises `SettingsError` if it cannot."""


class LoadOptions(msgspec.Struct, frozen=True):
    """How settings are read; all usual if nothing is said."""

    start: Start = Path
    """Gives where relative paths of written things start, by the folder of the file
    that names them; usually that folder itself."""

    overrides: tuple[Node, ...] = ()
    """Trees that are laid over the file, one after the other."""

    needs_secrets: bool = True
    """Whether a secret whose source is not there is a mistake. If not, an `UnsetSecret`
    stands for it; one that is there must be right in any case."""

    retired: Retired = msgspec.field(default_factory=dict[str, Mapping[str, str]])
    """Keys that tables once had, and why they are gone: no mistake, but told."""

    instead: Mapping[Path, str] = msgspec.field(default_factory=dict[Path, str])
    """By resolved path, what is read instead of a file's own text: a change that is
    checked before it is written."""


USUAL = LoadOptions()


class Settings(msgspec.Struct, Generic[Config], frozen=True):
    """Settings that fit, and where they came from."""

    value: Config
    origins: Mapping[Way, Origin]
    """Where each written setting stands; what is missing here is a default."""

    secrets: tuple[Secret, ...]
    """All secrets in use, for the logs to keep out."""

    warnings: tuple[SettingsError, ...]
    """What people should be told though it works."""

    files: tuple[Path, ...]
    """The file and all it includes, in the order they were read."""

    secret_files: tuple[Path, ...] = ()
    """Where secrets were read from; as private as the settings."""

    unset: tuple[SettingsError, ...] = ()
    """Secrets that are not there; see `LoadOptions.needs_secrets`."""


def load(
    path: Path,
    kind: type[Config],
    *,
    environment: Mapping[str, str],
    prepare: Prepare | None = None,
    check: Check[Config] | None = None,
    options: LoadOptions = USUAL,
) -> Settings[Config]:
    """Read a settings file, and the secrets that it names.

    Args:
        path: the file; errors call it as it is given here.
        kind: what it must say; with `forbid_unknown_fields`, as everything here.
        environment: where `{ env = "…" }` looks, usually `os.environ`.
        prepare: changes the whole tree before it is held against `kind`.
        check: called when every single setting fits.

    Raises:
        SettingsError: something is wrong; its `problems` tell each.
    """
    reader = FileReader(options.instead)
    top = reader.read(path)
    refuse(reader.errors)
    given = options.overrides
    taken = {name for tree in (top, *given) for name in variables(tree)}
    for each in given:
        if each.value.file not in taken:
            top = override(top, each)
    if prepare is not None:
        top = prepare(top)
    settings = decode(top, kind, environment=environment, check=check, options=options)
    return Settings(
        value=settings.value,
        origins=settings.origins,
        secrets=settings.secrets,
        warnings=settings.warnings,
        files=tuple(reader.files),
        secret_files=settings.secret_files,
        unset=settings.unset,
    )


@cache
def described(kind: type) -> shapes.Type:
    """Describe what a file must say; each file says it of a class of the program."""
    return shapes.type_info(kind)


def decode(
    top: Node,
    kind: type[Config],
    *,
    environment: Mapping[str, str],
    check: Check[Config] | None = None,
    options: LoadOptions = USUAL,
) -> Settings[Config]:
    """Turn a tree into settings; reads no file but those that hold secrets.

    Raises:
        SettingsError: as `load`.
    """
    file, needs_secrets = top.value.file, options.needs_secrets
    fit = Fit(environment, options.start, file, needs_secrets, options.retired)
    plain = fit.value(top, described(kind), ())
    refuse(fit.errors)
    try:
        value = msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        # Only a Struct's own `__post_init__` can still refuse here.
        raise SettingsError(str(error), file=top.value.file) from error
    errors, warnings = sort_out(() if check is None else check(value), fit, top)
    refuse(errors)
    return Settings(
        value,
        fit.origins,
        tuple(fit.secrets),
        tuple(warnings),
        (),
        tuple(fit.secret_files),
        tuple(fit.unset),
    )


def sort_out(
    complaints: Iterable[Complaint], fit: Fit, top: Node
) -> tuple[list[SettingsError], list[SettingsError]]:
    """Give complaints their places; split into errors and warnings."""
    errors: list[SettingsError] = []
    warnings = list(fit.warnings)
    told: set[tuple[Origin, str]] = set()
    for complaint in complaints:
        origin = nearest(complaint.way, fit.origins, top.value)
        # Why: an inherited setting is met once for every heir.
        if (origin, complaint.text) in told:
            continue
        told.add((origin, complaint.text))
        name = dotted(complaint.way)
        text = f"{name}: {complaint.text}" if name else complaint.text
        found = origin.error(text, complaint.hint)
        (warnings if complaint.is_warning else errors).append(found)
    return errors, warnings


def nearest(way: Way, origins: Mapping[Way, Origin], top: Origin) -> Origin:
    """Find where a setting stands or, for a default, the table it would be in."""
    while way not in origins and way:
        way = way[:-1]
    return origins.get(way, top)


def refuse(errors: list[SettingsError]) -> None:
    """Raise what was found, if anything was; in the order of the files and lines.

    Raises:
        SettingsError: the only one, or a `SettingsListError` with all of them.
    """
    files = list(dict.fromkeys(error.file for error in errors))
    found = sorted(
        errors, key=lambda error: (files.index(error.file), error.line, error.column)
    )
    if len(found) == 1:
        raise found[0]
    if found:
        raise SettingsListError(tuple(found))
