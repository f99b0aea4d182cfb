"""A script that ignores SIGTERM, has a child, and leaves daemons behind, one without any environment."""

import os
import signal
import subprocess
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["env", "-i", "setsid", "sleep", "600"])
if os.fork() == 0:
    time.sleep(600)
    os._exit(0)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("detached", flush=True)
        time.sleep(600)
    os._exit(0)
time.sleep(600)
