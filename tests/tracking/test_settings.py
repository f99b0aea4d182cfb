"""What a run may say about trackers, and what its proxies are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mosaic.contract.errors import UserError
from mosaic.tracking import LOCAL, OFFLINE, TrackerLink, links, read_progress, write_link
from mosaic.tracking.settings import check_tracking, proxies, read_env_file, settings_of, wanted, without_user


@pytest.mark.parametrize(
    ("extras", "said"),
    [
        ({"wandb_projekt": "x"}, "'extras.wandb_projekt' is not a setting of Weights & Biases; did you mean"),
        ({"mlflow_group": "x"}, "'extras.mlflow_group' is not a setting of MLflow"),
        ({"wandb_mode": "disabled"}, "'extras.wandb_mode' is 'disabled', but it must be online or offline"),
        ({"wandb_tags": [1]}, "'extras.wandb_tags' is \\[1\\], but it must be a list of texts"),
        ({"wandb_use_vpn_proxy": "yes"}, "must be true or false"),
        ({"track_mlflow": "please"}, "'extras.track_mlflow' is 'please', but it must be true or false"),
        ({"trackio_project": 3}, "'extras.trackio_project' is 3, but it must be a text"),
    ],
)
def test_a_wrong_setting_is_named(extras: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_tracking(extras)


def test_trackers_are_asked_for_by_name_and_told_their_own_settings() -> None:
    extras = {"track_trackio": True, "track_wandb": True, "track_mlflow": False, "wandb_tags": "a, b,"}
    extras |= {
        "wandb_api_key": "@env:WANDB_API_KEY",
        "wandb_entity": "@env:NOT_THERE",
        "mlflow_tracking_uri": "x",
    }
    check_tracking(extras)
    assert wanted(extras) == ["wandb", "trackio"]
    assert settings_of("wandb", extras, {"WANDB_API_KEY": "k"}) == {"tags": ["a", "b"], "api_key": "k"}


def test_proxies_are_for_who_asks_the_runs_own_first(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# ours\nexport WANDB_VPN_HTTP_PROXY='http://file:1'\nWANDB_VPN_HTTPS_PROXY=http://file:2 # seen\n"
    )
    asked: dict[str, Any] = {"wandb_use_vpn_proxy": True}
    assert proxies({"wandb_http_proxy": "http://mine:1"}, {}, tmp_path) == {}
    assert proxies(asked, {}, tmp_path) == {"http": "http://file:1", "https": "http://file:2"}
    environment = {"WANDB_VPN_HTTPS_PROXY": "http://shell:2"}
    own = {**asked, "wandb_http_proxy": "http://mine:1"}
    assert proxies(own, environment, tmp_path) == {"http": "http://mine:1", "https": "http://shell:2"}
    assert proxies(asked, {}, tmp_path / "nowhere") == {}


def test_an_env_file_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_bytes(
        b'A=1\nB = "two words" \nnonsense\n\xff\xfe=3\nC=\nD="http://u:p@h" # mine\n'
        b"E='a # b'\nF=\"open # x\n"
    )
    known = {"A": "1", "B": "two words", "C": "", "D": "http://u:p@h", "E": "a # b", "F": '"open'}
    assert read_env_file(path) | known == read_env_file(path)


@pytest.mark.parametrize(
    "address", ["me:secret@host:80", '"http://me:secret@host:80"', "http://me:secret@[host", "//a:se@cret@h"]
)
def test_an_address_that_makes_no_sense_shows_no_password_either(address: str) -> None:
    assert "cret" not in without_user(address) and "h" in without_user(address)


def test_no_password_is_kept_of_what_a_client_says(tmp_path: Path) -> None:
    said = "Cannot connect to proxy 'http://me:secret@host:80/': refused."
    write_link(tmp_path, TrackerLink("wandb", OFFLINE, problem=said, url="http://me:secret@h/x"), {})
    (kept,) = links(tmp_path)
    assert (kept.problem, kept.url) == ("Cannot connect to proxy 'http://host:80/': refused.", "http://h/x")


def test_an_address_is_shown_without_its_password() -> None:
    assert without_user("http://me:secret@host:80/x?write_token=y") == "http://host:80/x"
    assert without_user("sqlite:///a/b.db") == "sqlite:///a/b.db"


def test_links_are_what_was_written_and_damage_is_none(tmp_path: Path) -> None:
    assert links(tmp_path) == []
    here = TrackerLink("mlflow", LOCAL, command="mlflow ui", details={"project": "p"})
    write_link(tmp_path, here, {"run": "1"})
    kept = TrackerLink("wandb", OFFLINE, command="wandb sync x", problem="It is away.")
    write_link(tmp_path, kept, {})
    assert links(tmp_path) == [kept, here], "in the order of the list, not of time"
    assert read_progress(tmp_path, "mlflow") == {"run": "1"}
    assert kept.text == "Weights & Biases: kept here: `wandb sync x`\nIt is away."
    for text in ("", "[]", '{"link": {"state": 3}}', '{"link": {"finished": "no"}}'):
        (tmp_path / "tracking" / "wandb.json").write_text(text)
        assert [link.name for link in links(tmp_path)] == ["mlflow"], text
        assert read_progress(tmp_path, "wandb") == {}
