"""`python -m cleanrl_worker.evaluation.interactive`."""

import sys

from cleanrl_worker.evaluation.interactive import main

sys.exit(main())
