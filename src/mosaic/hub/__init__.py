"""Models to and from the Hugging Face hub, in the layout of CleanRL's own models there.

`account` knows the token, names and the hub's answers, `bundle` and `card` what an upload holds, `uploads`
does it and keeps how it went, `models` has those that were pulled. The hub's client is imported where it is
used.
"""

MODEL_SUFFIX = ".cleanrl_model"
CARD_SUFFIX = ".policy.json"
BEST = ".best"
ABOUT = "mosaic.json"
"""What the model is of, for whoever pulls it."""
REPLAY = "replay.mp4"
ALGORITHM = "algorithm"
"""Where the user's own file lies by which the policy was trained, as in a run's folder."""
