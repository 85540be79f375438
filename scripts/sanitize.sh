#!/usr/bin/env bash
# Runs the tests of the index and of batches of events on a kernel, and on what reads events, that are built with the
# address and undefined-behaviour sanitizers (gcc). Takes some minutes; arguments go to pytest. The repository's own build
# is left alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r src tests benchmarks pyproject.toml "$copy"
rm -f "$copy"/src/holdfast/matching/_kernel*.so "$copy"/src/holdfast/model/_events*.so
include=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')
suffix=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
for module in matching/_kernel model/_events; do
    gcc -O1 -g -std=c11 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -shared \
        -fPIC -I"$include" "$copy/src/holdfast/$module"/*.c -o "$copy/src/holdfast/$module$suffix" -lm
done

cd "$copy"
# Python itself never frees some memory, so leaks are the business of other tests. With malloc for all of its objects,
# each has a block of its own, and a step beyond is seen.
LD_PRELOAD="$(gcc -print-file-name=libasan.so):$(gcc -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc PYTHONPATH="$copy/src" \
    "$PYTHON" -m pytest tests/index -p no:cacheprovider "$@"
