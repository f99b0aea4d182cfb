"""Takes away the folder that it runs in."""

import os
import shutil

shutil.rmtree(os.getcwd())
