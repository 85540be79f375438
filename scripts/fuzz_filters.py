#!/usr/bin/env python3
"""Fuzzes the filter language, guided by coverage: parse, evaluate against the reference, write and read back.

    .venv/bin/pip install atheris
    .venv/bin/python scripts/fuzz_filters.py [-max_total_time=600] [-max_len=200] [other options of libFuzzer]

Stops at the first input that raises anything but FilterError, or that means something else than the reference says,
and leaves it in a file crash-…; add it to CORPUS in tests/filters/fuzzing.py with the fix. `./test --long` runs it too.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

try:
    import atheris
except ImportError:
    sys.exit("skipped: atheris is not installed (.venv/bin/pip install atheris)")

with atheris.instrument_imports(include=["holdfast"]):
    from tests.filters.fuzzing import CORPUS, TOKENS, check


def check_bytes(data: bytes) -> None:
    check(data.decode("utf-8", "replace"))


def escaped(token: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token.encode("utf-8", "replace"))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        seeds, dictionary = Path(folder, "seeds"), Path(folder, "dictionary")
        seeds.mkdir()
        for i, text in enumerate(CORPUS):
            seeds.joinpath(f"{i:03}").write_bytes(text.encode("utf-8", "surrogatepass"))
        dictionary.write_text("".join(f'"{escaped(token)}"\n' for token in TOKENS))
        atheris.Setup([*sys.argv, f"-dict={dictionary}", str(seeds)], check_bytes)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
