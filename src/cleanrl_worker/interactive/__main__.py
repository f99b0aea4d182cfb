"""`python -m cleanrl_worker.interactive`."""

import sys

from cleanrl_worker.interactive import main

sys.exit(main())
