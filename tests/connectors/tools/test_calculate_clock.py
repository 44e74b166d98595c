"""Proves what the tools `calculate` and `clock` answer, and what they refuse."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.messages.inbound import Address, ToolCall, ToolContext, ToolResult
from connectors.tools.arguments import ArgumentsError, decode_arguments, schema_of
from connectors.tools.calculate import CalculateTool, CalculationError, calculate
from connectors.tools.clock import ClockTool

CONTEXT = ToolContext(
    agent="ben", correlation_id="c", address=Address("terminal", "1"), sender_id="sam"
)
NOON = 1_752_148_800.0  # 2025-07-10 12:00:00 UTC, a Thursday


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("12 * 7", "84"),
        ("2 + 3 * 4 - 5", "9"),
        ("-(2 + 3)", "-5"),
        ("2 ** 3 ** 2", "512"),
        ("2 ** 64", "18446744073709551616"),
        ("2 ** -2", "0.25"),
        ("2^10", "1024"),
        ("6 × 7 ÷ 2 − 1", "20"),
        ("10 / 2", "5"),
        ("10 / 4", "2.5"),
        ("10 ** 30 / 10", "1" + "0" * 29),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("0.1 + 0.2", "0.3"),
        ("1.5e3", "1500"),
        ("-0.0", "0"),
        ("sqrt(10 ** 40)", "1" + "0" * 20),
        ("sqrt(2)", "1.4142135623731"),
        ("abs(-3) + floor(2.7) + ceil(2.1)", "8"),
        ("round(2.567, 2)", "2.57"),
        ("round(2.7)", "3"),
        ("round(1234, -2)", "1200"),
        ("max(1, 2.5) + min(3, 4, 5)", "5.5"),
        ("pi", "3.14159265358979"),
        ("(-1) ** 10 ** 9", "1"),
        ("2 ** -5000", "0"),
    ],
)
def test_arithmetic_has_its_result(expression: str, result: str) -> None:
    assert calculate(expression) == result


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1 / 0", "divided by zero"),
        ("1 % 0", "divided by zero"),
        ("0 ** -1", "divided by zero"),
        ("9 ** 9 ** 9", "too large"),
        ("10 ** 1000 * 10 ** 1000", "too large"),
        ("10 ** 400 / 3", "too large"),
        ("1.5 ** 10 ** 9", "too large"),
        ("1e999", "too large"),
        ("1e308 * 10", "too large"),
        ("2 ** 4096", "too large"),
        ("2 ** 4095 + 2 ** 4095", "too large"),
        ("(-8) ** 0.5", "no real number"),
        ("sqrt(-1)", "no real square root"),
        ("round(1, -10 ** 9)", "at most 300"),
        ("round(1, 0.5)", "whole number of places"),
        ("sqrt()", "takes 1 numbers"),
        ("round(1, 2, 3)", "takes 1 to 2 numbers"),
        ("1,000", "1000, not 1,000"),
        ("x + 1", "'x' is no number"),
        ("launch(1)", "no function 'launch'"),
        ("min(*(1, 2))", "only arithmetic"),
        ("1 if 2 else 3", "only arithmetic"),
        ("not 1", "only arithmetic"),
        ("", "not complete"),
        ("1 +", "not complete"),
        ("007", "not complete"),
        ("--" * 40 + "1", "nested more than 60"),
        ("(" * 240 + "1" + ")" * 240, "not complete"),
        ("1" * 501, "above 500 characters"),
    ],
)
def test_what_has_no_result_is_explained(expression: str, text: str) -> None:
    with pytest.raises(CalculationError, match=text):
        calculate(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')",
        "().__class__",
        "1 .real",
        "lambda: 1",
        "[1]",
        "1or 2",
        "0x1f",
        "1j",
        "1_000",
        "a = 1",
        "a := 1",
        "1; 2",
        "1\x002",
        "٣ + 1",
        "f'{1}'",
        "1 < 2",
        "1 | 2",
        "1 << 10 ** 9",
    ],
)
def test_nothing_but_arithmetic_is_ever_parsed(expression: str) -> None:
    with pytest.raises(CalculationError, match="only arithmetic"):
        calculate(expression)


whole = st.integers(-(10**30), 10**30)


@given(whole, whole, whole)
def test_whole_numbers_are_exact(a: int, b: int, c: int) -> None:
    assert calculate(f"({a}) * ({b}) - ({c})") == str(a * b - c)
    if c and Fraction(a * c, c).denominator == 1:
        assert calculate(f"({a}) * ({c}) / ({c})") == str(a)


async def test_calculate_says_what_it_worked_out() -> None:
    call = ToolCall("1", "calculate", b'{"expression": " 12 * 7 "}')
    assert await CalculateTool().run(call, CONTEXT) == ToolResult("12 * 7 = 84")


async def tell(arguments: bytes) -> ToolResult:
    return await ClockTool(lambda: NOON).run(ToolCall("1", "clock", arguments), CONTEXT)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (b"", "Thursday, 2025-07-10, 12:00:00 UTC (UTC+0000)"),
        (b"{}", "Thursday, 2025-07-10, 12:00:00 UTC (UTC+0000)"),
        (
            b'{"timezone": "Europe/Berlin"}',
            "Thursday, 2025-07-10, 14:00:00 Europe/Berlin (UTC+0200)",
        ),
        (
            b'{"timezone": "Pacific/Kiritimati"}',
            "Friday, 2025-07-11, 02:00:00 Pacific/Kiritimati (UTC+1400)",
        ),
    ],
)
async def test_the_clock_knows_every_zone(arguments: bytes, text: str) -> None:
    assert await tell(arguments) == ToolResult(text)


@pytest.mark.parametrize(
    ("zone", "meant"),
    [
        ("Berlin", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("Europe", "IANA name|did you mean"),
        ("../../etc/passwd", "IANA name"),
        ("\x00", "IANA name"),
        ("", "IANA name"),
    ],
)
async def test_an_unknown_zone_is_explained(zone: str, meant: str) -> None:
    result = await tell(msgspec.json.encode({"timezone": zone}))
    assert result.is_error
    with pytest.raises(ValueError, match=meant):
        raise ValueError(result.text)


class Inner(msgspec.Struct):
    number: int


class Nested(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments with Structs inside."""

    one: Inner
    many: list[Inner] = []


def test_structs_inside_structs_are_written_out() -> None:
    schema = schema_of(Nested)
    assert b"$ref" not in schema
    inner = b'"items":{"title":"Inner","type":"object"'
    assert inner in schema


def test_wrong_arguments_are_explained_with_what_is_expected() -> None:
    with pytest.raises(ArgumentsError, match=r'missing.*"one", "many" \(optional\)'):
        decode_arguments(b"{}", Nested)
    with pytest.raises(ArgumentsError, match=r"\$\.one\.number"):
        decode_arguments(b'{"one": {"number": "x"}}', Nested)
