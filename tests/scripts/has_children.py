"""A script with child processes, as vector environments and data loaders have them."""

import multiprocessing
import os
import time


def work():
    print(f"child={os.getpid()}", flush=True)
    while True:
        time.sleep(0.01)


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        context.Process(target=work, daemon=True).start()
    time.sleep(600)
