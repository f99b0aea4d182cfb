"""Pictures as PNG files: written and read again."""

from __future__ import annotations

import numpy as np
import pytest

from mosaic.fastlane.png import decode_png, encode_png


@pytest.mark.parametrize("shape", [(1, 1, 3), (4, 7, 3), (210, 160, 3)])
def test_a_picture_comes_back_as_it_was(shape: tuple[int, int, int]) -> None:
    picture = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    np.testing.assert_array_equal(decode_png(encode_png(picture)), picture)


def test_what_is_no_picture_of_ours_is_refused() -> None:
    whole = encode_png(np.ones((4, 4, 3), np.uint8))
    grey = whole[:25] + b"\x00" + whole[26:]
    for data in (b"", b"GIF89a", whole[:30], whole[:45], whole[:20] + b"\x00\x00\x00\x09" + whole[24:], grey):
        with pytest.raises(ValueError, match="picture"):
            decode_png(data)
