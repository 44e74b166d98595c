"""Proves that settings either fit or are refused whole, each mistake at its place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given, strategies as st

from runtime.config import messages as words
from runtime.config.loader import CommandText, Complaint, Origin, decode, load
from runtime.config.tree import MOST_FILES, inherit, parse
from runtime.errors import MisuseError, SettingsError
from runtime.secret import OpenText, Secret


class Cat(msgspec.Struct, frozen=True, tag_field="kind", tag="cat"):
    lives: Annotated[int, msgspec.Meta(ge=1, le=9)] = 9


class Dog(msgspec.Struct, frozen=True, tag_field="kind", tag="dog"):
    collar: Secret | None = None


class Keeper(msgspec.Struct, frozen=True):
    pet: str
    hours: Annotated[float, msgspec.Meta(gt=0)] = 8.0
    is_kind: bool = True


Name = Annotated[str, msgspec.Meta(pattern="^[a-z]+$", description="small letters")]


class Zoo(msgspec.Struct, frozen=True):
    motto: str = ""
    size: Literal["small", "large"] = "small"
    floor_plan: Path | None = None
    tags: tuple[str, ...] = ()
    gates: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("north",)
    pets: dict[Name, Cat | Dog] = {}
    keeper_defaults: dict[str, float] = {}
    keepers: dict[Name, Keeper] = {}
    rounds: tuple[Keeper, ...] = ()


def problems(text: str, **environment: str) -> list[str]:
    """Decode a text that does not fit; give what is said, `line:column: text`."""
    with pytest.raises(SettingsError) as caught:
        decode(parse(text, "f"), Zoo, environment=environment)
    return [str(each).removeprefix("f:") for each in caught.value.problems]


def hint(text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        decode(parse(text, "f"), Zoo, environment={})
    return caught.value.hint


def zoo(text: str, **environment: str) -> Zoo:
    return decode(parse(text, "f"), Zoo, environment=environment).value


def write(folder: Path, **files: str) -> Path:
    """Write `name.toml` files; give the path of `main.toml`."""
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder / "main.toml"


def test_everything_that_fits_is_decoded() -> None:
    found = zoo(
        'motto = "hi"\nsize = "large"\ntags = ["a"]\nfloor_plan = "plans/1.svg"\n'
        "[pets.tom]\nkind = 'cat'\nlives = 3\n[pets.rex]\nkind = 'dog'\n"
        "collar = { env = 'TAG' }\n[[rounds]]\npet = 'tom'\nhours = 2\n",
        TAG="gold-and-round",
    )
    assert found.pets == {"tom": Cat(lives=3), "rex": Dog(Secret("gold-and-round"))}
    assert found.rounds == (Keeper("tom", hours=2.0),)
    assert found.floor_plan == Path("plans/1.svg")
    assert (found.motto, found.size, found.tags) == ("hi", "large", ("a",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\nmoto = 'x'", "2:1: unknown key 'moto' at the top"),
        ("[pets.tom]\nkind = 'cat'\n live = 3", "3:2: unknown key 'live' in pets.tom"),
        ("tags = 'a'", '1:8: tags must be a list, not the text "a"'),
        ("gates = []", "1:9: gates must be a list, not an empty one"),
        ("tags = ['a', 3]", "1:14: tags[1] must be a text, not 3"),
        ("motto = true", "1:9: motto must be a text, not true"),
        ("motto = {}", "1:9: motto must be a text, not a table"),
        ("motto = []", "1:9: motto must be a text, not a list"),
        (
            "motto = 2026-11-21",
            "1:9: motto must be a text, not the date or time 2026-11-21",
        ),
        ("size = 'big'", '1:8: size must be "large" or "small", not the text "big"'),
        ("floor_plan = 3", "1:14: floor_plan must be a path, not 3"),
        ("pets = 3", "1:8: pets must be a table, not 3"),
        ("[pets]\ntom = 3", "2:7: pets.tom must be a table, not 3"),
        ("[pets.tom]", "1:7: pets.tom lacks 'kind'"),
        ("[pets.tom]\nkind = 'cow'", '2:8: pets.tom: there is no kind "cow"'),
        ("[pets.Tom]\nkind = 'cat'", "1:7: the name 'Tom' in [pets] is not allowed"),
        ("[[rounds]]", "1:3: rounds[0] lacks 'pet'"),
        ("keepers.a = 3", "1:13: keepers.a must be a table, not 3"),
        (
            "[pets.t]\nkind = 'cat'\nlives = 10",
            "3:9: pets.t.lives must be a whole number from 1 to 9, not 10",
        ),
        (
            "[pets.t]\nkind = 'cat'\nlives = true",
            "3:9: pets.t.lives must be a whole number from 1 to 9, not true",
        ),
        (
            '[pets."tom\\n"]\nkind = "cat"',
            r"1:7: the name 'tom\n' in [pets] is not allowed",
        ),
        (
            "[pets.t]\nkind = 'cat'\nlives = 3.0",
            "3:9: pets.t.lives must be a whole number from 1 to 9, not 3.0",
        ),
        (
            "[[rounds]]\npet = 'x'\nhours = inf",
            "3:9: rounds[0].hours must be a number above 0, not inf",
        ),
        (
            "[[rounds]]\npet = 'x'\nis_kind = 1",
            "3:11: rounds[0].is_kind must be true or false, not 1",
        ),
    ],
)
def test_a_mistake_is_told_at_its_place(text: str, expected: str) -> None:
    assert problems(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("moto = 'x'", "did you mean 'motto'?"),
        ("inclde = []", "did you mean 'include'?"),
        ("size = 'smal'", "did you mean 'small'? known: large, small"),
        ("[pets.a]\nkind = 'kat'", "did you mean 'cat'? known: cat, dog"),
        ("[pets.a]\nkind = 'cat'\nlives = 0", "for example: lives = 9"),
        ("[pets.A]\nkind = 'cat'", "it must be small letters"),
        ("[[rounds]]", 'for example: pet = "…"'),
        ("tags = 1", 'for example: tags = ["…"]'),
        ("motto = gpt", 'text stands in quotes: key = "text"'),
    ],
)
def test_a_mistake_comes_with_a_way_out(text: str, expected: str) -> None:
    assert hint(text).startswith(expected)


@pytest.mark.parametrize(
    ("text", "place", "quote"),
    [
        ('tags = ["a"]\nmotto = "abc # "\nsize = "x\nb = 1', "3:8", '"'),
        ("motto = 'it\nsize = 'x'", "1:9", "'"),
        ("motto = 'abc", "1:9", "'"),
        ('# it\'s "\nmotto = "a \\" b\n', "2:9", '"'),
        ('motto = """abc\n"" \n\n', "1:9", '"""'),
        ("motto = '''abc", "1:9", "'''"),
        ('"motto = 1\r\n', "1:1", '"'),
        ('motto = """a" ""b\\""" """\nsize = "', "2:8", '"'),
    ],
)
def test_a_text_that_is_not_closed_is_told_where_it_begins(
    text: str, place: str, quote: str
) -> None:
    assert problems(text) == [
        f"{place}: not valid TOML: the text that begins here with {quote} has no end"
    ]
    where = "" if len(quote) == 3 else " in the same line"
    assert hint(text) == f"put {quote} behind it{where}"


@pytest.mark.parametrize(
    ("text", "place", "bracket"),
    [
        ('a = "]"\ntags = ["[", # ]\n"b"\n[pets]\nx = 1\n', "2:8", "["),
        ("tags = [[1], [2]\n", "1:8", "["),
        ("a = { b = 1\nc = 2", "1:5", "{"),
        ("a = 1\n[pets\nx = [1]", "2:1", "["),
    ],
)
def test_a_bracket_that_is_not_closed_is_told_where_it_stands(
    text: str, place: str, bracket: str
) -> None:
    assert problems(text) == [f"{place}: not valid TOML: the {bracket} here has no end"]


def test_of_many_known_names_the_nearest_three_are_told() -> None:
    known = {f"setting_{n}": n for n in range(9)}
    few = [*known][:8]
    assert words.close_to("x", few, "see there") == f"known: {', '.join(few)}"
    told = words.close_to("setting_x1", known, "see there")
    assert told.startswith("did you mean 'setting_1'? near it: setting_1, setting_")
    assert told.endswith("; all 9: see there")
    assert told.count("setting_") == 4
    assert words.close_to("x", known).count("setting_") == 9


def test_all_mistakes_are_told_at_once_in_the_order_of_the_lines() -> None:
    text = "[[rounds]]\nhours = 0\n[pets]\na = 1\n[keepers.x]\npets = 2\nis_kind = 3"
    assert [each.partition(" ")[0] for each in problems(text)] == [
        "1:3:",
        "2:9:",
        "4:5:",
        "5:10:",
        "6:1:",
        "7:11:",
    ]


@pytest.mark.parametrize(
    ("collar", "expected"),
    [
        ("'in-the-open-123'", "must name a secret's source, never hold"),
        ("{}", "must have one source"),
        ("{ env = 'A', file = 'b' }", "must have one source"),
        ("{ evn = 'A' }", "unknown key 'evn'"),
        ("{ env = 3 }", "env must be a text, not 3"),
        ("{ env = 'UNSET' }", "the environment variable UNSET is not set"),
        ("{ env = 'EMPTY' }", "the environment variable EMPTY is empty"),
        ("{ env = 'FAKE' }", "holds a placeholder, not a secret"),
        ("{ env = 'SHORT' }", "is shorter than 8 characters"),
        ("{ env = 'in-the-open-123' }", "env must be the name of an environment"),
        ("{ file = '/nowhere' }", "the file /nowhere cannot be read"),
        (r'{ file = "~nobody-of-this-name/\u0000" }', "cannot be read"),
    ],
)
def test_a_secret_that_cannot_be_had_is_refused(collar: str, expected: str) -> None:
    text = f"[pets.rex]\nkind = 'dog'\ncollar = {collar}"
    told = problems(text, EMPTY=" ", FAKE="your_key_here", SHORT="abc")
    assert len(told) == 1
    assert told[0].startswith("3:")
    assert expected in told[0]
    assert "in-the-open" not in told[0]


class Sign(msgspec.Struct, frozen=True):
    words: OpenText


@pytest.mark.parametrize(
    ("written", "value", "is_secret"),
    [
        ("'Closed'", "Closed", False),
        ("{ env = 'TAG' }", "gold-and-round", True),
        ("{ before = 'Bearer ', env = 'TAG' }", "Bearer gold-and-round", True),
        ("{ before = '', env = 'TAG' }", "gold-and-round", True),
    ],
)
def test_a_text_may_be_open_a_secret_or_both(
    written: str, value: str, *, is_secret: bool
) -> None:
    source = parse(f"words = {written}", "f")
    found = decode(source, Sign, environment={"TAG": "gold-and-round"})
    assert found.value.words.reveal() == value
    assert found.value.words.is_secret is is_secret
    assert found.secrets == ((Secret("gold-and-round"),) if is_secret else ())


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("3", "1:9: words must be a text, not 3"),
        ("{ before = 3, env = 'TAG' }", "1:20: words.before must be a text"),
        ("{ before = 'Bearer ' }", "must have one source"),
        ("{ before = 'Bearer ', env = 'UNSET' }", "variable UNSET is not set"),
    ],
)
def test_a_text_that_is_neither_is_refused(written: str, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        decode(parse(f"words = {written}", "f"), Sign, environment={"TAG": "gold-x-1"})
    (problem,) = caught.value.problems
    assert told in str(problem)


def test_a_secret_in_a_file_that_others_may_read_is_a_warning(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("gold-and-round\n", encoding="utf-8")
    path = write(tmp_path, main="[pets.rex]\nkind = 'dog'\ncollar = { file = 'key' }\n")
    key.chmod(0o640)
    settings = load(path, Zoo, environment={})
    assert [(each.line, each.column) for each in settings.warnings] == [(3, 19)]
    assert settings.secrets == (Secret("gold-and-round"),)
    key.chmod(0o600)
    assert load(path, Zoo, environment={}).warnings == ()


def test_a_setting_knows_where_it_was_written(tmp_path: Path) -> None:
    path = write(tmp_path, main="include = ['b.toml']\nmotto = 'x'\n", b="tags = []\n")
    settings = load(path, Zoo, environment={})
    assert settings.origins["motto",] == Origin(str(path), 2, 9)
    assert str(settings.origins["tags",]) == f"{tmp_path / 'b.toml'}:1"
    assert ("size",) not in settings.origins
    assert settings.files == (path, tmp_path / "b.toml")


def test_a_later_file_wins_key_by_key(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        main="include = ['a.toml', 'b.toml']\n[keepers.x]\nhours = 3\n",
        a="motto = 'a'\ntags = ['a', 'b']\n[keepers.x]\npet = 'a'\nhours = 1\n",
        b="motto = 'b'\ntags = ['c']\n[keepers.x]\nhours = 2\n",
    )
    found = load(path, Zoo, environment={}).value
    assert (found.motto, found.tags) == ("b", ("c",))
    assert found.keepers == {"x": Keeper("a", hours=3.0)}


def test_paths_start_at_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    write(tmp_path / "below", b="floor_plan = 'plan.svg'\n")
    path = write(tmp_path, main="include = ['below/b.toml']\n")
    found = load(path, Zoo, environment={}).value
    assert found.floor_plan == tmp_path / "below" / "plan.svg"


@pytest.mark.parametrize(
    ("main", "expected"),
    [
        ("include = ['main.toml']", "1:12: {}/main.toml includes itself, in the end"),
        ("include = ['a.toml']", "1:12: {}/main.toml includes itself, in the end"),
        ("include = ['x.toml']", "1:12: the included file {}/x.toml does not exist"),
        ("include = 'a.toml'", "1:11: include must be a list of file names"),
        ("include = [3]", "1:12: include must be a list of file names"),
        ("include = [3", "1:11: not valid TOML: the [ here has no end"),
        ("include = ['.']", "cannot be read: Is a directory"),
    ],
)
def test_a_wrong_include_is_refused(main: str, expected: str, tmp_path: Path) -> None:
    path = write(tmp_path, main=main, a="include = ['main.toml']\n")
    with pytest.raises(SettingsError, match=r"include|cannot|TOML") as caught:
        load(path, Zoo, environment={})
    assert expected.format(tmp_path) in str(caught.value)


def test_the_number_of_files_is_bounded(tmp_path: Path) -> None:
    files = {f"f{n}": f"include = {[f'f{n + 1}.toml'] * 2}" for n in range(10)}
    path = write(tmp_path, main="include = ['f0.toml']", **files, f10="")
    with pytest.raises(SettingsError, match=f"more than {MOST_FILES} files"):
        load(path, Zoo, environment={})


def test_tables_take_what_they_lack_from_their_defaults(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        main="[keeper_defaults]\nhours = 3\n[keepers.a]\npet = 'x'\n"
        "[keepers.b]\npet = 'y'\nhours = 8\n",
    )
    prepare = partial(inherit, source="keeper_defaults", heirs="keepers")
    settings = load(path, Zoo, environment={}, prepare=prepare)
    assert settings.value.keepers["a"].hours == 3.0
    assert settings.value.keepers["b"].hours == 8.0
    assert settings.origins["keepers", "a", "hours"] == Origin(str(path), 2, 9)


def test_a_wrong_default_is_told_once_and_not_for_every_heir(tmp_path: Path) -> None:
    text = "[keeper_defaults]\nhours = 'x'\n[keepers.a]\npet = 'x'\n[keepers.b]\n"
    path = write(tmp_path, main=f"{text}pet = 'y'\n")
    prepare = partial(inherit, source="keeper_defaults", heirs="keepers")
    with pytest.raises(SettingsError) as caught:
        load(path, Zoo, environment={}, prepare=prepare)
    assert [each.line for each in caught.value.problems] == [2]


def test_a_check_across_settings_is_told_at_their_places() -> None:
    def check(found: Zoo) -> Iterator[Complaint]:
        yield Complaint(("tags", 1), f"not {found.tags[1]}", "other")
        yield Complaint(("pets", "tom", "lives"), "a default")
        yield Complaint(("motto",), "shouts", is_warning=True)

    text = "motto = 'A'\ntags = ['a', 'b']\n[pets.tom]\nkind = 'cat'\n"
    with pytest.raises(SettingsError) as caught:
        decode(parse(text, "f"), Zoo, environment={}, check=check)
    assert [str(each) for each in caught.value.problems] == [
        "f:2:14: tags[1]: not b",
        "f:3:7: pets.tom.lives: a default",
    ]
    assert caught.value.hint == "other"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a = 1\nb = '\xff'", ":2:6: is not UTF-8 text"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = " + b"9" * 6000, "a number is too long"),
        (b"#" * 1_048_577, "is longer than 1048576 bytes"),
        (b'a = """', ":1:5: not valid TOML: the text that begins here with"),
    ],
)
def test_what_is_no_settings_file_is_refused(
    content: bytes, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "main.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        load(path, Zoo, environment={})
    assert expected in str(caught.value)


def test_a_pipe_or_a_device_is_no_settings_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/null")):
        with pytest.raises(SettingsError, match="a pipe or a device") as caught:
            load(path, Zoo, environment={})
        assert caught.value.file == str(path)


def test_an_invisible_mark_at_the_start_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "main.toml"
    path.write_bytes(b"\xef\xbb\xbfmotto = 'x'\r\n")
    assert load(path, Zoo, environment={}).value.motto == "x"


def test_a_schema_that_settings_cannot_have_is_a_misuse() -> None:
    class Odd(msgspec.Struct):
        when: bytes = b""

    with pytest.raises(MisuseError, match="cannot have the type"):
        decode(parse("when = 'x'", "f"), Odd, environment={})


def test_what_a_struct_itself_refuses_is_told() -> None:
    class Picky(msgspec.Struct):
        low: int = 0

        def __post_init__(self) -> None:
            if self.low % 2:
                raise ValueError("low must be even")

    with pytest.raises(SettingsError, match="f: low must be even"):
        decode(parse("low = 3", "f"), Picky, environment={})


WORDS = [*"=.[]{},\n#'\"39\\", "[[", "]]", '"""', "motto", "tags", "pets", "kind"]
MORE = ["'cat'", "lives", "rounds", "include", '"x"', "inf", "true", "env", " = "]


@given(
    text=st.lists(st.sampled_from(WORDS + MORE), max_size=30).map("".join) | st.text()
)
def test_no_text_makes_the_loader_fail_in_another_way(text: str) -> None:
    with suppress(SettingsError):
        decode(parse(text, "f"), Zoo, environment={})


class Feeder(msgspec.Struct, frozen=True):
    command: tuple[CommandText, ...] = ()
    note: str = ""


def test_a_file_that_a_command_names_is_looked_for_beside_the_settings(
    tmp_path: Path,
) -> None:
    (tmp_path / "there.py").touch()
    (tmp_path / "folder").mkdir()
    words_ = ["there.py", "missing.py", "folder", "-v", "x" * 5_000]
    text = f'command = {msgspec.json.encode(words_).decode()}\nnote = "there.py"\n'
    found = load(write(tmp_path, main=text), Feeder, environment={}).value
    assert found.command == (str(tmp_path / "there.py"), *words_[1:])
    assert found.note == "there.py"
