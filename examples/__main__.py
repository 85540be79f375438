"""`./demo --scheme KIND`: shows how brokers of a scheme work together, by the module that the scheme names."""

import runpy
import sys

from holdfast.broker.registry import SCHEMES

demos = {kind: SCHEMES[kind].demo for kind in SCHEMES.kinds}
demos |= {name: SCHEMES[kind].templates[name].demo for name, kind in SCHEMES.templates.items()}
shown = {name: module for name, module in demos.items() if module}
wanted = sys.argv[1] if len(sys.argv) == 2 else ""
if wanted not in shown:
    print(f"there is no demo of {wanted!r}: ./demo --scheme [{' | '.join(shown)}]", file=sys.stderr)
    sys.exit(2)
runpy.run_module(shown[wanted], run_name="__main__")
