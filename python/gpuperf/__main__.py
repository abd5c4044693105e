"""`python -m gpuperf` is `gpuperf`."""

import sys

from gpuperf.cli import main

sys.exit(main())
