"""A script of others: whatever it prints and fails with commands the terminal that shows it."""

import sys

print("\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202eback 10%\r20%\rdone", flush=True)
print("::phase 1/2 \x1b]0;title\x07phase", flush=True)
sys.stderr.write("ValueError: \x1b[2Jcleared \x9b31m \x1b]52;c;cm0=\x07\n")
sys.exit(3)
