"""Who we are on the hub, what models are called there, and the hub's refusals as sentences."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.contract.errors import MosaicError, NotFoundError, StorageError, UnavailableError, UserError
from mosaic.contract.extras import require_extra

if TYPE_CHECKING:
    from huggingface_hub import HfApi

TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
ENDPOINT_VARIABLE = "HF_ENDPOINT"
EXTRA = "hub"
NO_TOKEN = (
    "There is no token for the Hugging Face hub: set HF_TOKEN, or log in once with `.venv/bin/hf auth login`."
)
_ENDPOINT = "https://huggingface.co"
_LONGEST_NAME = 96
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?"
_REPO = re.compile(rf"({_PART})/({_PART})")
_ENTITY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?")


def endpoint(environment: Mapping[str, str] | None = None) -> str:
    """The hub's address."""
    environment = os.environ if environment is None else environment
    return (environment.get(ENDPOINT_VARIABLE) or _ENDPOINT).rstrip("/")


def find_token(environment: Mapping[str, str] | None = None) -> str | None:
    """The user's token: of the environment, or what the hub's own login has kept; None when there is none."""
    environment = os.environ if environment is None else environment
    for name in TOKEN_VARIABLES:
        if token := environment.get(name, "").strip():
            return token
    try:
        return _token_file(environment).read_text().strip() or None
    except (OSError, ValueError):
        return None


def _token_file(environment: Mapping[str, str]) -> Path:
    if named := environment.get("HF_TOKEN_PATH"):
        return Path(named).expanduser()
    cache = Path(environment.get("XDG_CACHE_HOME") or "~/.cache")
    return Path(environment.get("HF_HOME") or cache / "huggingface").expanduser() / "token"


def require_account(entity: str | None = None) -> None:
    """Raise UserError when an upload could not be made from here: no client, no token, no such name."""
    require_extra(EXTRA, "Uploading a model")
    if entity:
        check_entity(entity)
    if find_token() is None:
        raise UserError(NO_TOKEN)


def check_entity(entity: str) -> None:
    """Refuse what cannot be the name of a user or an organization."""
    if len(entity) > _LONGEST_NAME or "--" in entity or not _ENTITY.fullmatch(entity):
        raise UserError(
            f"'{entity:.60}' cannot be a user or an organization of the hub: such a name has letters, digits "
            "and single hyphens."
        )


def usual_name(env_id: str, exp_name: str, seed: object) -> str:
    """What CleanRL calls the model of a run; what the hub does not take in a name becomes a hyphen."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", f"{env_id}-{exp_name}-seed{seed}")
    # The hub refuses these two.
    return re.sub(r"\.{2,}", ".", re.sub(r"-{2,}", "-", plain)).strip(".-")[-_LONGEST_NAME:].strip(".-")


def parse_repo(named: str) -> str:
    """`USER/MODEL`, also of a page's address."""
    text = named.strip()
    for before in (f"{endpoint()}/", f"{_ENDPOINT}/", "https://hf.co/"):
        text = text.removeprefix(before)
    text = text.removesuffix("/")
    found = _REPO.fullmatch(text)
    if found is None or "--" in text or ".." in text or max(map(len, found.groups())) > _LONGEST_NAME:
        raise UserError(f"'{named:.100}' is not the name of a model: give USER/MODEL, as on its page.")
    return text


class Hub:
    """The hub's own client, with our token."""

    def __init__(self, token: str | None) -> None:
        require_extra(EXTRA, "The Hugging Face hub")
        # Heavy, and needed by few.
        from huggingface_hub import HfApi
        from huggingface_hub.utils.tqdm import disable_progress_bars

        disable_progress_bars()
        self.token = token
        # False: else the client would look for a token of its own.
        self.api: HfApi = HfApi(endpoint=endpoint(), token=token or False, library_name="mosaic")

    @contextmanager
    def asked(self, what: str) -> Iterator[None]:
        """Inside, what the hub refuses is one sentence about `what`, such as `The model me/x`."""
        from httpx2 import HTTPError, InvalidURL
        from huggingface_hub import errors

        try:
            yield
        except MosaicError:
            raise
        except errors.RevisionNotFoundError as error:
            raise NotFoundError(f"{what} has no such revision: its page on the hub lists them.") from error
        except errors.HfHubHTTPError as error:
            raise self._refusal(error, what) from error
        except errors.OfflineModeIsEnabled as error:
            raise UnavailableError("The hub is not used because HF_HUB_OFFLINE is set: unset it.") from error
        except (HTTPError, InvalidURL, ConnectionError, TimeoutError) as error:
            raise self._unreachable(error) from error
        except errors.LocalEntryNotFoundError as error:
            # What the client makes of a connection that was refused while it looked for a file.
            raise self._unreachable(error.__cause__ or error) from error
        except OSError as error:
            place = f" {error.filename}" if error.filename else ""
            told = error.strerror or self._plain(error)
            raise StorageError(f"{what}: the file{place} cannot be read or written: {told}.") from error
        except Exception as error:
            # The client wraps what goes wrong in its threads, and hf_xet has errors of its own.
            inner = error.__cause__
            if isinstance(inner, errors.HfHubHTTPError):
                raise self._refusal(inner, what) from error
            if isinstance(inner, HTTPError):
                raise self._unreachable(inner) from error
            raise MosaicError(f"{what} could not be transferred: {self._plain(error)}.") from error

    def _refusal(self, error: OSError, what: str) -> MosaicError:
        from huggingface_hub import errors

        response = getattr(error, "response", None)
        status = response.status_code if response is not None else 0
        if isinstance(error, errors.GatedRepoError):
            return UserError(f"{what} is available on request only: ask for it on its page on the hub.")
        invalid = status == 401 and self.token is not None and "invalid" in str(error).lower()
        missing = isinstance(error, errors.RepositoryNotFoundError)
        # Who has no token is not told whether there is such a model.
        missing = missing or (status == 401 and self.token is None)
        if invalid or (status == 401 and not missing):
            return UserError(
                "The hub refuses the token, which may have been revoked: make a new one in its settings, "
                "and set HF_TOKEN."
            )
        if missing:
            seen = "your token has no access to it" if self.token else "it is private and needs HF_TOKEN"
            return NotFoundError(f"{what} is not on the hub, or {seen}: correct the name.")
        if isinstance(error, errors.EntryNotFoundError):
            return NotFoundError(f"{what} lacks a file that it lists: try again.")
        if status == 403:
            return UserError(f"{what}: the token may not do this; it needs the right to write there.")
        if status == 429 or status >= 500:
            return UnavailableError(f"The hub answers with status {status}: try again later.")
        told = getattr(error, "server_message", None) or f"status {status}"
        return MosaicError(f"{what}: the hub refuses it ({self._plain(told)}).")

    def _unreachable(self, error: object) -> UnavailableError:
        told = f" ({self._plain(error)})" if str(error) else ""
        return UnavailableError(
            f"The hub at {endpoint()} cannot be reached{told}: check the network, then try again."
        )

    def _plain(self, error: object) -> str:
        """An error's own words on one line, without the token, whoever may have put it there."""
        text = " ".join(str(error).split())[:300].rstrip(".")
        return text.replace(self.token, "***") if self.token else text
