"""A script whose children have no environment, a session of their own and no open file of the run's."""

import os
import subprocess
import sys
import time

subprocess.Popen(["env", "-i", "setsid", "sleep", "600"])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 256)
        os.chdir("/")
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
print(f"script={os.getpid()} {sys.argv[1:]}", flush=True)
time.sleep(600)
