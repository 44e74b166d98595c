"""The tool `calculate`: arithmetic for models, which are bad at it.

The text may come from anybody, so nothing is evaluated but numbers and the operations
below, each bounded before it is done: no expression can hang the program, fill its
memory or reach anything of it. Whole numbers are exact.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Final

import msgspec

from actors.messages.inbound import ToolContext, ToolResult, ToolSpec
from connectors.tools.arguments import ArgumentsTool, schema_of
from connectors.tools.registry import ToolParts

Number = int | float

MAX_CHARACTERS = 500
MAX_DEPTH = 60
"""Most operations inside each other."""

MAX_BITS = 4096
"""Size of the largest whole number: 1,233 digits."""

MAX_PLACES = 300
"""Most places, before or after the point, that `round` is asked for."""

FUNCTION_NAMES = "sqrt, abs, round, min, max, floor, ceil"
ALLOWED = f"allowed: numbers, + - * / // % **, brackets, {FUNCTION_NAMES}, pi, e"

# Why before parsing: Python warns on standard error of things like `1or 2`, and
# knows far more than arithmetic. What passes here gives no warning.
TOKENS = re.compile(
    r"(?:\s+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])|[A-Za-z]+(?![\w.])|[-+*/%(),])*",
    re.ASCII,
)
WRITTEN_BY_PEOPLE = str.maketrans({"^": "**", "×": "*", "÷": "/", "−": "-", "·": "*"})  # noqa: RUF001  the signs themselves


class CalculationError(ValueError):
    """The expression has no result here; the text tells the model why."""


def calculate(expression: str) -> str:
    """Work out an expression and write its result as people do.

    Raises:
        CalculationError: it is none, has no result, or is too large.
    """
    text = expression.strip().translate(WRITTEN_BY_PEOPLE)
    if len(text) > MAX_CHARACTERS:
        raise CalculationError(f"the expression is above {MAX_CHARACTERS} characters")
    if not TOKENS.fullmatch(text):
        raise CalculationError(f"only arithmetic can be worked out; {ALLOWED}")
    try:
        tree = ast.parse(text, mode="eval")
        return written(checked(evaluate(tree.body, 0)))
    except (SyntaxError, RecursionError, MemoryError) as error:
        # The last two are how the parser refuses what is nested too deeply.
        raise CalculationError(f"this is not complete arithmetic; {ALLOWED}") from error
    except ZeroDivisionError as error:
        raise CalculationError("nothing can be divided by zero") from error
    except OverflowError as error:
        raise CalculationError("the result is too large") from error


def evaluate(node: ast.expr, depth: int) -> Number:
    """Work out one part of an expression.

    Raises:
        CalculationError: it is no arithmetic, or too large.
    """
    if depth > MAX_DEPTH:
        raise CalculationError(f"nested more than {MAX_DEPTH} deep; split it up")
    match node:
        case ast.Constant(value=int() | float() as number):
            return checked(number)
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.UnaryOp(op=ast.UAdd() | ast.USub() as sign, operand=operand):
            number = evaluate(operand, depth + 1)
            return -number if isinstance(sign, ast.USub) else number
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATIONS:
            operation = OPERATIONS[type(sign)]
            return checked(
                operation(evaluate(left, depth + 1), evaluate(right, depth + 1))
            )
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return call(name, [evaluate(argument, depth + 1) for argument in args])
        case _:
            raise CalculationError(refusal(node))


def refusal(node: ast.expr) -> str:
    """Say why a part of an expression is not worked out."""
    match node:
        case ast.Tuple():
            return "write numbers without separators: 1000, not 1,000"
        case ast.Name(id=name):
            return f"{name!r} is no number; {ALLOWED}"
        case _:
            return f"only arithmetic can be worked out; {ALLOWED}"


def call(name: str, numbers: Sequence[Number]) -> Number:
    """Call a function by name.

    Raises:
        CalculationError: there is none, or it takes other numbers.
    """
    if name not in FUNCTIONS:
        raise CalculationError(f"there is no function {name!r}; {ALLOWED}")
    function, least, most = FUNCTIONS[name]
    if not least <= len(numbers) <= most:
        takes = f"{least}" if least == most else f"{least} to {most}"
        raise CalculationError(f"{name} takes {takes} numbers, not {len(numbers)}")
    return checked(function(numbers))


def checked(number: Number | complex) -> Number:
    """Let a result pass that is a real number of bearable size.

    Raises:
        CalculationError: it is not.
    """
    if isinstance(number, complex):
        raise CalculationError("the result is no real number")
    if isinstance(number, int):
        refuse_bits(number.bit_length())
    elif not math.isfinite(number):
        raise CalculationError("the result is too large")
    return number


def refuse_bits(bits: int) -> None:
    """Refuse whole numbers above the bound, by their size.

    Raises:
        CalculationError: there are too many bits.
    """
    if bits > MAX_BITS:
        raise CalculationError("the result is too large")


def multiply(left: Number, right: Number) -> Number:
    """Multiply, whole numbers only while they stay bearable."""
    if isinstance(left, int) and isinstance(right, int):
        refuse_bits(left.bit_length() + right.bit_length() - 1)
    return left * right


def divide(left: Number, right: Number) -> Number:
    """Divide; whole numbers that divide evenly stay whole."""
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return left / right


def raise_to(base: Number, exponent: Number) -> Number | complex:
    """Raise to a power, whole numbers only while they stay bearable."""
    are_whole = isinstance(base, int) and isinstance(exponent, int)
    if are_whole and abs(base) > 1 and exponent > 0:
        # The least the result can have; checked() measures what it really has.
        refuse_bits((int(abs(base)).bit_length() - 1) * int(exponent))
    result: Number | complex = base**exponent
    return result


def square_root(number: Number) -> Number:
    """Take the root, exactly where a whole number has a whole one.

    Raises:
        CalculationError: the number is negative.
    """
    if number < 0:
        raise CalculationError("a negative number has no real square root")
    if isinstance(number, int) and math.isqrt(number) ** 2 == number:
        return math.isqrt(number)
    return math.sqrt(number)


def round_to(numbers: Sequence[Number]) -> Number:
    """Round to the nearest, with the number of places as an optional second.

    Raises:
        CalculationError: the places are not a small whole number.
    """
    if len(numbers) == 1:
        return round(numbers[0])
    number, places = numbers
    if not isinstance(places, int) or abs(places) > MAX_PLACES:
        raise CalculationError(
            f"round takes a whole number of places, at most {MAX_PLACES}"
        )
    return round(number, places)


def written(number: Number) -> str:
    """Write a result: 15 digits of a fraction, and no `.0` after whole numbers."""
    if isinstance(number, int):
        return str(number)
    # Chosen: 15 digits are what a double always holds, so that 0.1 + 0.2 is 0.3.
    return f"{number + 0.0:.15g}"


CONSTANTS: Final[dict[str, float]] = {"pi": math.pi, "e": math.e}
OPERATIONS: Final[
    dict[type[ast.operator], Callable[[Number, Number], Number | complex]]
] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: multiply,
    ast.Div: divide,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: operator.mod,
    ast.Pow: raise_to,
}
FUNCTIONS: Final[dict[str, tuple[Callable[[Sequence[Number]], Number], int, int]]] = {
    "sqrt": (lambda numbers: square_root(numbers[0]), 1, 1),
    "abs": (lambda numbers: abs(numbers[0]), 1, 1),
    "round": (round_to, 1, 2),
    "min": (min, 1, 100),
    "max": (max, 1, 100),
    "floor": (lambda numbers: math.floor(numbers[0]), 1, 1),
    "ceil": (lambda numbers: math.ceil(numbers[0]), 1, 1),
}


Expression = Annotated[
    str,
    msgspec.Meta(
        max_length=MAX_CHARACTERS,
        description=f"as in (3 + 4) * sqrt(16); {ALLOWED}",
    ),
]


class CalculateArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `calculate` takes."""

    expression: Expression


class CalculateTool(ArgumentsTool[CalculateArguments]):
    """Works out an arithmetic expression."""

    def __init__(self) -> None:
        spec = ToolSpec(
            "calculate",
            "Work out an arithmetic expression. Whole numbers are exact.",
            schema_of(CalculateArguments),
            is_repeatable=True,
            effect="read",
            is_own_words=True,
        )
        super().__init__(spec, CalculateArguments, CalculationError)

    async def answer(
        self, arguments: CalculateArguments, context: ToolContext
    ) -> ToolResult:
        """Work it out; an expression without a result is one with `is_error`."""
        del context  # everybody has the same arithmetic
        expression = arguments.expression.strip()
        return ToolResult(f"{expression} = {calculate(expression)}")


def make_tool(parts: ToolParts) -> CalculateTool:
    """Make the tool; see `registry.py`."""
    del parts  # arithmetic needs nothing
    return CalculateTool()
