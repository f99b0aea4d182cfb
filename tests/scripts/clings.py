"""A script that ignores SIGTERM and leaves a daemon of its own behind."""

import os
import signal
import sys
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(f"daemon={os.getpid()}", flush=True)
        time.sleep(600)
    os._exit(0)
print(f"script={os.getpid()} {sys.argv[1:]}", flush=True)
time.sleep(600)
