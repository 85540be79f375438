"""What ./demo filters runs: filters select events, an index finds the filters, and both explain themselves.

The quotes are synthetic: a random walk from a fixed seed.
"""

from __future__ import annotations

import random
import sys
import time

from holdfast import EventError, Filter, FilterError, FilterIndex
from holdfast.matching import ENGINE

SYMBOLS = ("IBM", "SUNW", "XOM", "AAPL", "MSFT", "ORCL")
COLOUR = sys.stdout.isatty()


def style(text: str, code: str) -> str:
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


def heading(text: str) -> None:
    print(f"\n{style(text, '1;36')}")


def quotes(count: int) -> list[dict[str, object]]:
    """A synthetic random walk for each symbol."""
    draw = random.Random(3)
    prices = {symbol: draw.uniform(20, 150) for symbol in SYMBOLS}
    result: list[dict[str, object]] = []
    for _ in range(count):
        symbol = draw.choice(SYMBOLS)
        prices[symbol] *= draw.uniform(0.95, 1.06)
        result.append({"symbol": symbol, "price": round(prices[symbol], 2), "volume": draw.randrange(1, 5000)})
    return result


def one_filter() -> None:
    heading("A filter is text; an event is a topic and attributes.")
    text = "topic = 'stock' AND price BETWEEN 10 AND 20 AND NOT symbol LIKE 'X%'"
    filter = Filter(text)
    print(f"  {text}")
    for attributes in ({"symbol": "IBM", "price": 12.5}, {"symbol": "XOM", "price": 12.5}, {"symbol": "IBM"}):
        matched = filter.matches(attributes, topic="stock")
        print(f"    {'matches' if matched else '      –'}  {attributes}")


def subscribers() -> None:
    heading("An index says which subscribers want an event, in the order in which they came.")
    index: FilterIndex[str] = FilterIndex()
    for name, text in {
        "risk desk": "topic = 'stock' AND price > 100",
        "tech fund": "topic = 'stock' AND symbol IN ('AAPL', 'MSFT', 'ORCL', 'SUNW')",
        "big trades": "price * volume > 400000",
        "odd lots": "volume < 100 OR volume % 100 <> 0 AND volume < 500",
        "audit": "",
    }.items():
        index.add(name, Filter(text))
        print(f"  {style(name.ljust(11), '33')} {text or '(everything)'}")
    print()
    for quote in quotes(8):
        line = f"{quote['symbol']!s:<5} {quote['price']!s:>7} × {quote['volume']:<5}"
        print(f"  {line} → {style(', '.join(index.match(quote, topic='stock')), '32')}")
    print(f"\n  Why not? {index.explain(quotes(1)[0], 'risk desk', topic='stock')}")


def relations() -> None:
    heading("Filters can be compared: a broker forwards only what no other subscription covers.")
    wide, narrow, other = Filter("price > 10"), Filter("price > 20 AND symbol = 'IBM'"), Filter("price < 5")
    print(f"  ({wide}) covers ({narrow}): {wide.covers(narrow)}")
    print(f"  ({wide}) intersects ({other}): {wide.intersects(other)}")
    merged = Filter("price > 1 AND price > 2 AND price <= 9 AND NOT price > 9")
    print(f"  ({merged}) is ({merged.canonical})")


def mistakes() -> None:
    heading("Mistakes say what was wrong, and where.")
    try:
        Filter("price > 10 AND symbol LIKE IBM")
    except FilterError as problem:
        print("  " + str(problem).replace("\n", "\n  "))
    try:
        Filter("price > 10").matches({"price": float("nan")})
    except EventError as problem:
        print(f"  {problem}")


def many_filters(count: int) -> None:
    heading(f"And with {count:,} filters ({ENGINE} engine):")
    draw = random.Random(1)
    index: FilterIndex[int] = FilterIndex()
    start = time.perf_counter()
    for number in range(count):
        low = draw.randrange(100)
        symbol, volume = f"S{draw.randrange(2000)}", draw.randrange(5000)
        text = f"symbol = '{symbol}' AND price BETWEEN {low} AND {low + 50} AND volume > {volume}"
        index.add(number, Filter(text))
    print(f"  parsed and added in {time.perf_counter() - start:.1f} s")
    events = [
        {"symbol": f"S{draw.randrange(2000)}", "price": draw.uniform(0, 150), "volume": 2500} for _ in range(2000)
    ]
    start = time.perf_counter()
    found = sum(map(len, index.match_batch(events)))
    elapsed = time.perf_counter() - start
    print(f"  {found:,} matches for {len(events):,} events, {elapsed / len(events) * 1e6:.1f} µs an event")


def main() -> None:
    one_filter()
    subscribers()
    relations()
    mistakes()
    many_filters(20_000 if ENGINE == "compiled" else 5_000)
    print()


if __name__ == "__main__":
    main()
