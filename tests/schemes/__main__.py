"""`python -m tests.schemes` is `holdfast` with the schemes of the tests."""

import sys

from holdfast.cli.main import main

sys.exit(main())
