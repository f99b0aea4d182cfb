"""Says which key it was given: by its digest in a file, and, as careless scripts do, aloud."""

import argparse
import hashlib
import json
import os
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--env-id")
parser.add_argument("--total-timesteps", type=int)
parser.add_argument("--seed", type=int)
parser.add_argument("--api-key", default="")
parser.add_argument("--pad-token", default="")
parser.add_argument("--hold", action="store_true")
parser.add_argument("--fails", action="store_true")
args = parser.parse_args()
told = {"flag": args.api_key, "variable": os.environ.get("SERVICE_LOGIN", "")}
digests = {name: hashlib.sha256(value.encode()).hexdigest() for name, value in told.items()}
Path("told.json").write_text(json.dumps({**digests, "pad_token": args.pad_token}))
print(args, flush=True)
while args.hold:
    time.sleep(0.05)
if args.fails:
    raise RuntimeError(f"The key {args.api_key} is not known.")
