"""The sums that the verifier computes of files are those of FIPS 180-4."""

from __future__ import annotations

import hashlib
import random
import re
from pathlib import Path

from tests.support.proofs import BUILT, files_of_plan, judge, proof_of, write_rules

VECTORS = {
    b"": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    b"abc": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq": (
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    b"a" * 1_000_000: "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
}
"""Test vectors of NIST (FIPS 180-4; the CSRC's examples of SHA-256)."""


def computed(folder: Path, messages: list[bytes]) -> dict[bytes, str]:
    """Return what the verifier computes: it tells the sum of a file that has changed."""
    proof = proof_of(write_rules(folder, files_of_plan("ring,3")))
    sums = {}
    for message in messages:
        (folder / "s1.flows").write_bytes(message)
        judgement = judge(folder, proof)
        assert judgement.status == 1
        found = re.search(r"s1\.flows has changed: its SHA-256 is (\w+), not ", judgement.text)
        assert found, judgement
        sums[message] = found[1]
    return sums


@BUILT
def test_test_vectors_of_the_standard(tmp_path: Path) -> None:
    assert computed(tmp_path / "rules", [*VECTORS]) == VECTORS


@BUILT
def test_messages_of_every_length_up_to_three_blocks(tmp_path: Path) -> None:
    rng = random.Random(1)  # noqa: S311 - it only has to be repeatable
    messages = [rng.randbytes(length) for length in range(193)]
    wanted = {message: hashlib.sha256(message).hexdigest() for message in messages}
    assert computed(tmp_path / "rules", messages) == wanted
