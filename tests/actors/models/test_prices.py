"""Proves that a cost follows from the list, and cached tokens have their own price."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.messages.inbound import Usage
from actors.models.catalogue import PriceLine, PriceList, Prices
from connectors.config.models import load_prices
from connectors.config.shipped import shipped_prices

COUNTS = st.integers(0, 10_000_000)
PRICES = st.floats(0, 1000)


def test_each_kind_of_token_has_its_price() -> None:
    prices = Prices(input=2.0, output=8.0, cached=0.5)
    assert prices.cost(Usage(1_000_000, 500_000, 400_000)) == 1.2 + 4.0 + 0.2
    assert Prices(input=2.0).cost(Usage(1_000_000, 0, 400_000)) == 2.0


@given(PRICES, PRICES, COUNTS, COUNTS, COUNTS)
def test_a_cost_is_never_below_nothing_whatever_a_provider_counts(
    price: float, cached_price: float, read: int, written: int, cached: int
) -> None:
    prices = Prices(price, price, cached_price)
    assert prices.cost(Usage(read, written, cached)) >= 0.0


def test_the_first_line_that_fits_counts() -> None:
    lines = (
        PriceLine("openai", "gpt-4.1-mini*", 0.4, 1.6),
        PriceLine("openai", "gpt-4.1*", 2.0, 8.0),
    )
    known = PriceList("v1", lines)
    assert known.find("openai", "gpt-4.1-mini-2025-04-14").input == 0.4
    assert known.find("openai", "gpt-4.1").input == 2.0
    assert known.find("ollama", "gpt-4.1") == Prices()
    assert known.find("openai", "gpt-4.1").version == "v1"


def test_no_line_of_the_shipped_list_hides_one_below_it() -> None:
    known = load_prices(shipped_prices())
    assert known.version
    for line in known.prices:
        example = line.model.replace("*", "")
        found = known.find(line.kind, example)
        assert (found.input, found.output) == (line.input, line.output), line.model
