"""Recorded replies come back bit for bit."""

from pathlib import Path

from twinspark_tools.gates.replies import Reply, Scored
from twinspark_tools.gates.transcripts import read_record, write_record


def test_a_record_comes_back_bit_for_bit(tmp_path: Path) -> None:
    top = ((" a", -0.1234567890123456), ("bytes:\\xf0", -9999.0))
    replies = {
        "one": Reply((3, 4), (Scored("ü", None, ()), Scored(" a", -0.1 - 2**-56, top)), "length"),
        "two": Reply((), (), None),
    }
    write_record(tmp_path / "new" / "record.json", "1x-float32", replies)
    assert read_record(tmp_path / "new" / "record.json") == replies
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["record.json"]
