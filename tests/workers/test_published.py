"""The daemon keeps of what workers publish as much as it said it would, and no more."""

from __future__ import annotations

from mosaic.contract.proto import trainer_pb2 as pb
from mosaic.trainer.broker import BATCH_BYTES, BATCH_ITEMS, Published, Ring


def _items(*seqs: int, padding: int = 0) -> list[pb.Published]:
    return [pb.Published(seq=seq, payload_json="x" * padding) for seq in seqs]


def _seqs(batch: pb.PublishedBatch | None) -> list[int]:
    return [item.seq for item in batch.items] if batch is not None else []


def test_a_ring_is_read_from_any_number_on() -> None:
    ring = Ring()
    ring.add(_items(1, 2, 3))
    assert _seqs(ring.since(0)) == [1, 2, 3]
    assert _seqs(ring.since(2)) == [3]
    assert ring.since(3) is None
    assert ring.since(99) is None


def test_a_full_ring_drops_the_oldest_and_says_how_many() -> None:
    ring = Ring(items=3)
    ring.add(_items(*range(1, 11)))
    batch = ring.since(4)
    assert batch is not None
    assert (_seqs(batch), batch.dropped) == ([8, 9, 10], 3)


def test_a_ring_is_bounded_by_bytes_too() -> None:
    ring = Ring(size=10_000)
    for seq in range(1, 101):
        ring.add(_items(seq, padding=1000))
        assert ring.bytes <= 10_000
    assert _seqs(ring.since(0))[-1] == 100
    ring.add(_items(101, padding=20_000))
    assert (ring.bytes, ring.since(0)) == (0, None)
    ring.add(_items(102))
    assert _seqs(ring.since(0)) == [102]


def test_numbers_that_the_worker_left_out_count_as_dropped() -> None:
    ring = Ring()
    ring.add(_items(1, 2, 7, 8, 20))
    batch = ring.since(1)
    assert batch is not None
    assert (_seqs(batch), batch.dropped) == ([2, 7, 8, 20], 15)


def test_what_is_sent_again_is_kept_once() -> None:
    ring = Ring()
    assert ring.add(_items(1, 2, 3)) == 3
    assert ring.add(_items(2, 3, 4)) == 1
    assert _seqs(ring.since(0)) == [1, 2, 3, 4]


def test_a_worker_that_was_started_again_goes_on_after_its_predecessor() -> None:
    published = Published()
    published.begin("run")
    published.add("run", "steps", _items(1, 2, 3))
    published.begin("run")
    assert published.add("run", "steps", _items(1, 2)) == 2
    assert _seqs(published.ring("run", "steps").since(0)) == [1, 2, 3, 4, 5]


def test_a_batch_is_bounded_by_count_and_by_bytes() -> None:
    ring = Ring()
    ring.add(_items(*range(1, 2 * BATCH_ITEMS)))
    assert _seqs(ring.since(10)) == list(range(11, 11 + BATCH_ITEMS))
    large = Ring()
    large.add(_items(*range(1, 11), padding=BATCH_BYTES // 3))
    assert _seqs(large.since(0)) == [1, 2]
    large.add(_items(11, padding=2 * BATCH_BYTES))
    assert _seqs(large.since(10)) == [11]


def test_all_rings_together_are_bounded_and_the_one_written_longest_ago_goes_first() -> None:
    published = Published(size=10_000)
    for run_id in ("a", "b", "c"):
        published.add(run_id, "steps", _items(1, padding=4000))
    assert published.ring("a", "steps").since(0) is None
    assert _seqs(published.ring("b", "steps").since(0)) == [1]
    published.add("a", "steps", _items(2, padding=4000))
    assert _seqs(published.ring("a", "steps").since(0)) == [2]
    assert published.ring("b", "steps").since(0) is None
    published.forget("c")
    published.add("b", "steps", _items(2, padding=4000))
    assert _seqs(published.ring("a", "steps").since(0)) == [2]
