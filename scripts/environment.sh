# Sourced by ./test and ./demo after they have changed into the repository. Makes .venv with the pinned versions of
# constraints.txt, or reuses it while nothing that it was made from has changed, and sets PYTHON to its interpreter.
# WITH_SPARK=1 adds Spark, which is large; an environment that has it serves those that don't ask for it, too.
# Afterwards, .venv/holdfast-stamp holds two sums, that of what a fresh environment depends on, and that of what the
# installation of Holdfast itself depends on, and the extras. It is written last: a half-finished installation has none.

environment_fail() {
    printf 'holdfast: %s\n' "$*" >&2
    exit 1
}

environment_sums() {
    "$1" - <<'PYTHON'
import hashlib, os, pathlib, shutil, sys

def sum_of(words, paths):
    total = hashlib.sha256(repr(words).encode())
    for path in paths:
        total.update(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()

sources = sorted(path for path in pathlib.Path("src").rglob("*.[ch]") if path.is_file())
compiler = shutil.which((os.environ.get("CC") or "cc").split()[0])
print(sum_of([sys.version, os.path.realpath(sys.executable), os.getcwd()], [pathlib.Path("constraints.txt")]))
print(sum_of([compiler, os.environ.get("CFLAGS")], [pathlib.Path("pyproject.toml"), pathlib.Path("setup.py"), *sources]))
PYTHON
}

environment_prepare() {
    local base=${HOLDFAST_PYTHON:-python3} stamp=.venv/holdfast-stamp extras=dev has= wanted

    command -v "$base" >/dev/null ||
        environment_fail "'$base' was not found. Install Python 3.11 or newer, or name one with HOLDFAST_PYTHON."
    "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        environment_fail "Python 3.11 or newer is needed, and '$base' is $("$base" --version 2>&1)." \
            "Name a newer one with HOLDFAST_PYTHON."
    "$base" -c 'import ensurepip, venv' 2>/dev/null ||
        environment_fail "'$base' has no venv module with pip. Install it (on Debian and Ubuntu: python3-venv)."

    # Inside an activated environment, python3 is that environment's; ours is made from the Python below it.
    base=$("$base" -c 'import sys; print(sys._base_executable)')
    if [[ -f $stamp ]]; then has=$(tail -n 1 "$stamp"); fi
    if [[ -n ${WITH_SPARK:-} || $has == dev,spark ]]; then extras=dev,spark; fi
    wanted=$(environment_sums "$base" && echo "$extras")
    if [[ -x .venv/bin/python && -f $stamp && $(<"$stamp") == "$wanted" ]]; then
        return
    fi

    if [[ ! -x .venv/bin/python || ! -f $stamp || $(head -n 1 "$stamp") != "$(head -n 1 <<<"$wanted")" ]]; then
        echo "holdfast: making .venv${WITH_SPARK:+ with Spark} (once; later runs reuse it)" >&2
        rm -f "$stamp"
        "$base" -m venv --clear .venv
        environment_pip install pip
    else
        echo "holdfast: bringing .venv up to date${WITH_SPARK:+, with Spark}" >&2
        rm -f "$stamp"
    fi
    # One left over from an earlier build would hide that the new one could not be built.
    rm -f src/holdfast/matching/_kernel*.so src/holdfast/model/_events*.so
    # The first constraint pins what is installed, the second what builds it.
    environment_pip install --editable ".[$extras]" --build-constraint constraints.txt
    printf '%s\n' "$wanted" >"$stamp.new"
    mv "$stamp.new" "$stamp"
}

# That setuptools calls its table of extensions experimental is known, and answered by the pin.
environment_pip() {
    local -x PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONWARNINGS='ignore:`[tool.setuptools.ext-modules]'
    .venv/bin/python -m pip --quiet "$@" --constraint constraints.txt ||
        environment_fail "the installation failed; the next run starts it again."
}

# One run prepares at a time. The lock is given back before anything else is started.
if command -v flock >/dev/null; then
    exec 9>.venv.lock
    flock --nonblock 9 || { echo "holdfast: waiting for another run to prepare .venv" >&2 && flock 9; }
    environment_prepare
    exec 9>&-
else
    environment_prepare
fi
PYTHON=$PWD/.venv/bin/python
