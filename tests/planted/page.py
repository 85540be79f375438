"""Writes docs/checking.md: what is checked, and which planted mistakes each check sees.

`python -m tests.planted.page` runs every mistake with its recorded seed, and sorts them by what was said of the run.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pkgutil
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from holdfast.trace import checkers
from tests.planted import records
from tests.planted.mistakes import MISTAKES
from tests.planted.verdicts import VERDICTS

PAGE = Path(__file__).parent.parent.parent / "docs" / "checking.md"
OF_A_CHECKER = re.compile(r"([a-z][a-z-]*(?::[A-Za-z0-9]+)?), at [0-9.]+ ms")
HEAD = """# What is checked

Which promise is held by which check, and which planted mistakes each of them sees: to find the check for a promise, or
the promise that a new check should hold. Written by `python -m tests.planted.page`, which runs every mistake with its
recorded seed ([tests.md](tests.md)); what a swarm draws is in [simulator.md](simulator.md).

Three kinds of checks look at every drawn run:

- **checkers** read the trace of a run, and know nothing but what clients and brokers say in it
  (`holdfast.trace.checkers`). They check live traces as well ([trace.md](trace.md));
- **watches** stand beside the nodes: they see what becomes safe on each disk and what leaves each machine, and know at
  once what nobody could see from outside (`tests/paxos/watch.py`, `tests/paxos/fast_watch.py`, `tests/sim/claims.py`,
  and the truth of named subscriptions in `tests/sim/named_truth.py`);
- **invariants** are the nodes' own (`check_invariants`), asked after every turn.
"""


def descriptions() -> dict[str, str]:
    """Of checkers, by name, from the first lines of their modules."""
    first = [
        (importlib.import_module(f"{checkers.__name__}.{module.name}").__doc__ or "").splitlines()[0]
        for module in pkgutil.iter_modules(checkers.__path__)
    ]
    texts = [re.sub(r" \(D[0-4]-[^)]*\)", "", text) for text in first]
    found = {text.split("`")[1]: text.partition(": ")[2] for text in texts if text.startswith("`")}
    for text in texts:
        for name in re.findall(r"`([a-z-]+)`", text):
            found.setdefault(name, text.partition(":")[0] + ".")
    return found


def seen_by(name: str) -> tuple[str, str]:
    """The check that sees a mistake: a checker by name, or what a watch or an invariant says."""
    said = MISTAKES[name].seen(records.read()[name].seed)
    if checker := OF_A_CHECKER.match(said):
        return "checker", checker[1].partition(":")[0]
    said = re.sub(r"^seed [0-9]+: ", "", said)
    said = re.sub(r" \(python -m [^)]*\)$", "", said)
    said = re.sub(r"^[A-Za-z]*(Error|Broken): ", "", said)
    return "watch", re.split(r" \(|: |, [0-9']| at [0-9]| after \[", said)[0].strip()


def main() -> None:
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        found = list(zip(MISTAKES, pool.map(seen_by, MISTAKES), strict=True))
    lines = [HEAD, "## Checkers\n", "| checker | holds that | sees |", "|---|---|---|"]
    known = descriptions()
    by_checker: dict[str, list[str]] = {name: [] for name in known}
    by_watch: dict[str, list[str]] = {}
    for name, (kind, check) in found:
        (by_checker if kind == "checker" else by_watch).setdefault(check, []).append(name)
    for checker, names in sorted(by_checker.items()):
        lines.append(f"| `{checker}` | {known.get(checker, '')} | {'; '.join(names)} |")
    lines += ["\n## Watches and invariants\n", "| what is said | sees |", "|---|---|"]
    lines += [f"| {check} | {'; '.join(names)} |" for check, names in sorted(by_watch.items())]
    lines += ["\n## Mistakes that a test sees, and no swarm\n", "| mistake | test |", "|---|---|"]
    lines += [f"| {name} | `{verdict.test}` |" for name, verdict in VERDICTS.items() if verdict.test]
    lines += ["\n## Mistakes that nobody sees\n", "| mistake | why that is harmless |", "|---|---|"]
    lines += [f"| {name} | {verdict.harmless} |" for name, verdict in VERDICTS.items() if verdict.harmless]
    PAGE.write_text("\n".join(lines) + "\n")
    print(f"{len(found)} mistakes; written: {PAGE.name}")


if __name__ == "__main__":
    main()
