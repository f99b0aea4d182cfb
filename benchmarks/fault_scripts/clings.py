"""A script that ignores SIGTERM, has a child, and leaves a daemon of its own behind."""

import os
import signal
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
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
