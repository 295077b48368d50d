"""Whether a round was what it says: against its plan, against the lab's own clock, and against
what the server counted. Believes nothing that can be checked, and passes over what cannot be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..plans import Item, Plan
from . import digests
from .driver import Round

#: The share of the concurrency that a driver claims which must have been in flight at once where
#: every answer was held back. Elsewhere a client may be done sooner than it asks again.
SEEN = 0.5
#: Requests beyond what was claimed that are no lie: a listing, a HEAD, one that was tried again
#: while its forerunner still closed.
ASIDE = 2
#: Bytes that no client splits, where it doesn't say what it splits: the least part of S3.
WHOLE = 5 << 20
#: Keys that S3 lists in one answer at most.
PAGE = 1000
#: Of each kind of fault so many are told in full.
_TOLD = 3


def judge(plan: Plan, round: Round, counts: Mapping[str, int]) -> list[str]:
    """Faults of the round, none where it is sound. ``counts`` is what the server counted from
    ``go`` to ``done`` (``requests``, ``bytes_in``, ``bytes_out``, ``held_back``: answers that it
    held back) and the highest that it saw at once (``requests_in_flight_peak``); what it does not
    say is not judged."""
    faults = _items(plan, round)
    if not faults:
        faults += _bytes(plan, round)
    return [
        *faults,
        *_times(round),
        *_asked(plan, round.done["effective"]),
        *_in_flight(plan, round, counts),
        *_moved(plan, round, counts),
    ]


def _items(plan: Plan, round: Round) -> list[str]:
    """Each item exactly once, in order, and none failed."""
    covered: Counter[int] = Counter()
    beyond = []
    for sample in round.samples:
        last = sample["n"] + sample["count"]
        if last > len(plan.work):
            beyond.append(f"a sample is of item {last - 1}, and the plan ends with {_last(plan)}")
        covered.update(range(sample["n"], min(last, len(plan.work))))
    faults = _told(beyond)
    missing = [n for n in range(len(plan.work)) if not covered[n]]
    if missing:
        faults.append(f"{len(missing)} of {len(plan.work)} items are missing, first {missing[0]}")
    doubled = [n for n, times in covered.items() if times > 1]
    if doubled:
        faults.append(f"{len(doubled)} items are there more than once, first {min(doubled)}")
    places = [sample["n"] for sample in round.samples]
    if not faults and places != sorted(places):
        faults.append("samples are not in the order of the items")
    failed = [sample for sample in round.samples if sample["error"]]
    if failed:
        first = f"item {failed[0]['n']}: {failed[0]['error'][:300]}"
        faults.append(f"{len(failed)} of {len(round.samples)} samples failed, first {first}")
    return faults


def _bytes(plan: Plan, round: Round) -> list[str]:
    """As many bytes and keys as the items have, and where that was asked their digests."""
    faults = []
    for sample in round.samples:
        items = plan.work[sample["n"] : sample["n"] + sample["count"]]
        at, moved = f"item {sample['n']}", sum(item.bytes for item in items)
        if plan.operation == "list":
            keys = sum(item.keys or 0 for item in items)
            if sample.get("keys") != keys:
                faults.append(f"{at} has {sample.get('keys')} keys and must have {keys}")
                continue
        elif sample["bytes"] != moved:
            faults.append(f"{at} has {sample['bytes']} bytes and must have {moved}")
            continue
        if round.verify:
            faults += _digest(plan, sample, items, at)
    return _told(faults)


def _digest(plan: Plan, sample: Mapping[str, Any], items: tuple[Item, ...], at: str) -> list[str]:
    digest = sample.get("digest")
    if digest is None:
        return [f"{at} has no digest, and the round verifies"]
    wanted = digests.expected(items, plan.operation)
    if digest != wanted:
        what = "keys" if plan.operation == "list" else "bytes"
        return [f"{at} has wrong {what}: their digest is {digest} and must be {wanted}"]
    return []


def _times(round: Round) -> list[str]:
    """Everything between the lab's own ``go`` and the first word of the end."""
    begun, ended = round.done["start_ns"], round.done["end_ns"]
    faults = []
    if not round.go_ns <= begun <= ended:
        faults.append(f"the clock ran from {begun} to {ended}, and go was given at {round.go_ns}")
    if ended > round.first_output_ns:
        late = (ended - round.first_output_ns) / 1e9
        faults.append(f"printed {late:.6f} s before the end that it claims: its clock still ran")
    wrong = []
    for sample in round.samples:
        first = sample["start_ns"] if sample["first_ns"] is None else sample["first_ns"]
        if not begun <= sample["start_ns"] <= first <= sample["end_ns"] <= ended:
            wrong.append(
                f"item {sample['n']} has its start, first byte and end at {sample['start_ns']}, "
                f"{sample['first_ns']}, {sample['end_ns']}: not in order, or not within "
                f"{begun} to {ended}, when the clock ran"
            )
    return faults + _told(wrong)


def _asked(plan: Plan, effective: Mapping[str, Any]) -> list[str]:
    """What was asked for is what is in effect. Null is: nobody knows."""
    faults = []
    for name in ("concurrency", "part_size", "checksums"):
        asked, had = getattr(plan, name), effective.get(name)
        if asked is None or had is None or had == asked:
            continue
        if name == "part_size" and all(item.bytes <= min(asked, had) for item in plan.work):
            continue  # nothing is split by either
        faults.append(f"{name} in effect was {had}, and {asked} was asked for")
    return faults


def _in_flight(plan: Plan, round: Round, counts: Mapping[str, int]) -> list[str]:
    claimed = round.done["effective"].get("concurrency")
    if claimed is None:
        return []
    faults = []
    overlap = _overlap(round.samples)
    if overlap > claimed:
        faults.append(f"{overlap} samples overlap, and {claimed} at most were to be in flight")
    seen = counts.get("requests_in_flight_peak")
    if seen is not None and seen > claimed + ASIDE and _one_request_each(plan, round):
        faults.append(f"the server had {seen} requests in flight, and {claimed} at most were to be")
    if not counts.get("held_back"):
        return faults
    most = min(claimed, _requests(plan, round.done["effective"]))
    if seen is not None and seen < math.ceil(most * SEEN):
        faults.append(
            f"{most} requests in flight are claimed, and the server had {seen} while it held "
            "answers back"
        )
    single = all(sample["count"] == 1 for sample in round.samples)
    if single and len(plan.work) >= 2 * claimed and overlap < math.ceil(claimed * SEEN):
        faults.append(f"{claimed} items in flight are claimed, and {overlap} samples overlap")
    return faults


def _moved(plan: Plan, round: Round, counts: Mapping[str, int]) -> list[str]:
    """The server has sent or taken what is said to have come or gone, when the round ended."""
    faults = []
    way = {"get": "bytes_out", "put": "bytes_in"}.get(plan.operation)
    moved = sum(sample["bytes"] for sample in round.samples)
    if way and way in counts and counts[way] < moved:
        faults.append(
            f"{moved} bytes are claimed, and the server had seen {counts[way]} when the round "
            "ended: it ended early, or they came from elsewhere"
        )
    if "requests" not in counts:
        return faults
    least = 1 if plan.operation == "list" else len({(i.key, i.range) for i in plan.work})
    if counts["requests"] < least:
        faults.append(f"the server saw {counts['requests']} requests for {least} items")
    elif plan.listing and counts["requests"] < least + -(-least // PAGE):
        faults.append(
            f"the server saw {counts['requests']} requests, "
            f"and a listing and {least} items are more"
        )
    part = round.done["effective"].get("part_size")
    if part is None or plan.operation == "list" or not any(i.bytes > part for i in plan.work):
        return faults
    wanted = _requests(plan, round.done["effective"])
    # A HEAD or the two ends of an upload for each item, and some that were tried again.
    most = wanted * 1.1 + 2 * len(plan.work) + 8
    if not wanted * 0.9 <= counts["requests"] <= most:
        faults.append(
            f"the server saw {counts['requests']} requests, and parts of {part} bytes make {wanted}"
        )
    return faults


def _requests(plan: Plan, effective: Mapping[str, Any]) -> int:
    """Requests that the work takes with the part size in effect. What a driver says to be smaller
    than what it puts in parts (``multipart_threshold``) is one."""
    if plan.operation == "list":
        return 1  # pages may have to follow one another
    part = effective.get("part_size")
    whole = effective.get("multipart_threshold") or 0 if plan.operation == "put" else 0
    return sum(
        max(1, -(-item.bytes // part)) if part and item.bytes >= whole else 1 for item in plan.work
    )


def _one_request_each(plan: Plan, round: Round) -> bool:
    """Whether as many requests as items are in flight, or there is but one item: concurrency
    counts items, and only of a single one its requests."""
    part = round.done["effective"].get("part_size") or WHOLE
    return len(plan.work) == 1 or all(item.bytes <= part for item in plan.work)


def _overlap(samples: Iterable[Mapping[str, Any]]) -> int:
    """The most samples at any one time. One that begins when another ends does not overlap it."""
    edges: list[tuple[int, int]] = []
    for sample in samples:
        edges += [(sample["start_ns"], 1), (max(sample["end_ns"], sample["start_ns"] + 1), -1)]
    most = now = 0
    for _, step in sorted(edges):
        now += step
        most = max(most, now)
    return most


def _told(faults: list[str]) -> list[str]:
    more = len(faults) - _TOLD
    return faults[:_TOLD] + ([f"and {more} more like these"] if more > 0 else [])


def _last(plan: Plan) -> int:
    return len(plan.work) - 1
