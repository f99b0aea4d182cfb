"""What looks like a key or a password, by its own shape or by the name that it has."""

from __future__ import annotations

import re
from itertools import pairwise

_PREFIXED = re.compile(
    r"(?<![\w-])(?:sk-|hf_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|npm_|pypi-|dckr_pat_|gsk_|r8_)([\w-]{16,})"
)
"""OpenAI and others, Hugging Face, GitHub, GitLab, Slack, npm, PyPI, Docker, Groq, Replicate."""
_WHOLE = re.compile(
    r"(?<!\w)(?:AKIA|ASIA)[A-Z0-9]{16}(?!\w)|(?<!\w)AIza[\w-]{35}|(?<!\w)eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
)
"""Amazon, Google, a signed JSON web token, a private key in PEM."""
_USER = re.compile(r"://([^/@\s]+)@")
_RUN = re.compile(r"[A-Za-z0-9]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CLASSES = (str.isupper, str.islower, str.isdigit)
_LEAST = 16
_LEAST_DIGITS = 3
_CHANGES = 0.35
"""Random letters and digits change between the kinds more often than words with numbers do."""
_CHANGES_OF_PATHS = 0.45
_ALWAYS = re.compile(
    r"(?:.*_)?(?:password|passwd|passphrase|api_?key|(?:secret|access|private)_key|client_secret|secret_access_key"
    r"|(?:access|auth|api|bearer|session)_token)"
)
"""Names under which any text is a secret."""
_OFTEN = frozenset(["key", "token", "secret", "credential", "credentials", "auth", "pat", "cookie"])
"""The last words of names under which a text that looks random is one."""
_NO_VALUE = re.compile(r"<.*>|\$\{.*\}|\$\w+|none|null", re.IGNORECASE)


def looks_secret(name: str, text: str) -> bool:
    """Whether a text, which has this name, is most likely a key or a password."""
    return has_known_shape(text) or _named_so(_words(name), text.strip())


def has_known_shape(text: str) -> bool:
    """Whether there is a key of a known service in a text, or an address with a password."""
    if any(_dense(found[1]) for found in _PREFIXED.finditer(text)) or _WHOLE.search(text):
        return True
    users = [found[1] for found in _USER.finditer(text)]
    return any((":" in user and "${" not in user) or _dense(user) for user in users)


def has_credentials(address: str) -> bool:
    """Whether an address, such as that of a proxy, names a user."""
    return _USER.search(address) is not None


def _words(name: str) -> str:
    """`apiKey` and `api-key` as `api_key`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W+", "_", name).lower()


def _named_so(name: str, text: str) -> bool:
    if len(text) < 2 or _NO_VALUE.fullmatch(text):
        return False
    if _ALWAYS.fullmatch(name):
        return not (name.endswith("key") and re.match(r"[~.]{0,2}/", text))
    *before, last = name.split("_")
    return last in _OFTEN and "public" not in before and not re.search(r"\s", text) and _dense(text)


def _dense(text: str) -> bool:
    """Whether letters and digits stand together as nobody writes them."""
    if any(sum(map(str.isdigit, run)) >= _LEAST_DIGITS and not run.isdigit() for run in _RUN.findall(text)):
        return "/" not in text or _changes(text) >= _CHANGES_OF_PATHS
    plain = re.sub(r"[^A-Za-z0-9]", "", text)
    least = _CHANGES_OF_PATHS if "/" in text else _CHANGES
    return len(plain) >= _LEAST and any(map(str.isdigit, plain)) and _changes(plain) >= least


def _changes(text: str) -> float:
    kinds = [next((at for at, is_one in enumerate(_CLASSES) if is_one(letter)), -1) for letter in text]
    return sum(one != other for one, other in pairwise(kinds)) / len(kinds)
