#!/usr/bin/env python3
"""Fuzzes what reads the bytes of events, guided by coverage: what scans, cuts, joins, looks at and matches batches.

    sudo apt-get install clang libclang-rt-14-dev llvm     # Debian's; nothing is installed by this script
    .venv/bin/python scripts/fuzz_events.py alone|whole [--coverage] [FOLDER] [-runs=N] [other options of libFuzzer]

`alone` is the scan without Python, some 100,000 inputs a second; `whole` is all of it in an interpreter of its own.
Both run under the address and undefined-behaviour sanitizers, on bytes in blocks of exactly their size. FOLDER, by
default one that is thrown away, keeps the corpus that was found; --coverage shows how many lines of the C sources a
kept one reaches. It stops at the first input that reads beyond its bytes, raises what is no refusal, or on which two
ways differ, and leaves it in a file crash-…: add it to CORPUS in tests/index/test_hostile.py with the fix.

libFuzzer, since what has to be seen is C: it counts the edges of the sources themselves, runs in the process, and takes
mutations that know msgpack (fuzzing/mutation.h) beside its own. atheris, which fuzzes the language (fuzz_filters.py),
sees the lines of Python and not those of C extensions that it has not built itself; AFL++ wants the same harness, and
starts a process for each input, or a fork.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from shutil import which

ROOT = Path(__file__).resolve().parent.parent
EVENTS = sorted((ROOT / "src/holdfast/model/_events").glob("*.c"))
KERNEL = sorted((ROOT / "src/holdfast/matching/_kernel").glob("*.c"))
ALONE = ROOT / "src/holdfast/model/_events/scan.c"
SANITIZERS = ["-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
PROFILE = ["-O1", "-fsanitize=fuzzer", "-fprofile-instr-generate", "-fcoverage-mapping"]

sys.path.insert(0, str(ROOT))


def build(target: str, options: list[str], program: Path) -> list[Path]:
    """Compiles a harness with what it reads; the sources that are under test."""
    sources, rest = [ALONE], [ROOT / "scripts/fuzzing/scan_alone.c", "-lm"]
    if target == "whole":
        folder, name = sysconfig.get_config_vars("LIBDIR", "LDVERSION")
        sources = [*EVENTS, *KERNEL]
        rest = [ROOT / "scripts/fuzzing/whole.c", f"-I{sysconfig.get_path('include')}", "-lm"]
        rest += [f"-L{folder}", f"-Wl,-rpath,{folder}", f"-lpython{name}"]
    subprocess.run(
        ["clang", "-g", "-std=c11", "-Wall", "-Wextra", *options, *sources, *rest, "-o", program], check=True
    )
    return [*sources, *sorted(ALONE.parent.glob("*.h"))]


def environment() -> dict[str, str]:
    """So that the embedded interpreter finds what this one finds."""
    paths = [ROOT / "src", ROOT, sysconfig.get_path("purelib")]
    return {
        **os.environ,
        "PYTHONHOME": sys.base_prefix,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # Python never frees some of its own
    }


def show_coverage(program: Path, profile: Path, sources: list[Path]) -> None:
    merged = profile.with_suffix(".merged")
    subprocess.run(["llvm-profdata", "merge", "-sparse", profile, "-o", merged], check=True)
    show = ["llvm-cov", "report", program, f"-instr-profile={merged}", *sources, "-show-branch-summary=false"]
    subprocess.run(show, check=True)


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] not in ("alone", "whole"):
        sys.exit(__doc__)
    if which("clang") is None:
        sys.exit("skipped: there is no clang (sudo apt-get install clang libclang-rt-14-dev llvm)")
    with_coverage = "--coverage" in arguments
    options = [argument for argument in arguments[1:] if argument.startswith("-") and argument != "--coverage"]
    folders = [argument for argument in arguments[1:] if not argument.startswith("-")]
    from tests.index.hostile import seeds

    with tempfile.TemporaryDirectory() as folder:
        program, corpus = Path(folder, arguments[0]), Path(folder, "seeds")
        corpus.mkdir()
        for number, data in enumerate(seeds()):
            corpus.joinpath(f"{number:03}").write_bytes(data)
        sources = build(arguments[0], PROFILE if with_coverage else SANITIZERS, program)
        kept = [*folders, corpus] if folders else [corpus]
        profile = Path(folder, "profile")
        run = [program, "-max_len=1200", "-timeout=20", *(["-runs=0"] if with_coverage else options), *kept]
        outcome = subprocess.run(run, env={**environment(), "LLVM_PROFILE_FILE": str(profile)}, check=False)
        if with_coverage:
            show_coverage(program, profile, sources)
        return outcome.returncode


if __name__ == "__main__":
    sys.exit(main())
