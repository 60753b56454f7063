"""Names as people call each other, letters as people begin them, and what a language puts beside a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.query.entities import resolve
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import InlineText
from tests.support.files import snapshot_of

TEXTS = (
    "鈴木由美が消防署へ連絡した。鈴木由美は新潟で十二年働いた。",
    "김민수는 부산 창고를 닫자고 제안했다. 참석자: 김민수, 이서연",
    "اقترح أحمد منصور إغلاق المستودع. السيد كريم النجار، لم تصل المحركات. الحاضرون: أحمد منصور، كريم النجار",
    "उपस्थित: राजेश गुप्ता। राजेश गुप्ता जी बजट फिर से बनाएँगे।",
    "นายสมชาย ใจดี เสนอให้ปิดคลังสินค้าที่ขอนแก่น",
    "Sr. Andrés Peña:\n\nLos motores no han llegado a la fábrica. Andrés Peña volverá a calcular el presupuesto.",
    "Kính gửi ông Lê Minh Đức, động cơ vẫn chưa đến. Ông Lê Minh Đức sẽ tính lại ngân sách.",
    "Orhan Güneş şirketin başına geçti ve fabrikayı taşıdı.",
    "陈思远在杭州的西湖研究所工作。他和王丽华一起设计了新港大桥，王芳没有参加。",
    "Tobias Fenn repaired the bridge. His brother lives with Tobias Fenn.",
)
CALLED = {
    "鈴木さん": "鈴木由美", "김민수 씨": "김민수", "el señor Andrés Peña": "Andrés Peña", "ông Lê Minh Đức": "Lê Minh Đức",
    "Mr. Tobias Fenn": "Tobias Fenn", "王丽华女士": "王丽华", "陈老师": "陈思远",
}  # fmt: skip


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder: Path = tmp_path_factory.mktemp("called")
    texts = tuple(InlineText(text, str(at)) for at, text in enumerate(TEXTS))
    return snapshot_of(folder / "c", texts)


@pytest.mark.parametrize(("asked", "title"), CALLED.items())
def test_whoever_is_called_with_a_courtesy_is_found(snapshot: Snapshot, asked: str, title: str) -> None:
    found, _ = resolve(snapshot, asked)
    assert found is not None and found["title"] == title


@pytest.mark.parametrize(("asked", "title"), [
    ("Tobias Fenn's brother", "Tobias Fenn"), ("the bridge of Tobias Fenn", "Tobias Fenn"), ("王老师", "王丽华"), ("王老师", "王芳"),
    ("Tobias Fenn's doctor", "Tobias Fenn"), ("杭州市长", "杭州"),
])  # fmt: skip
def test_what_only_mentions_a_name_is_not_taken_for_it(snapshot: Snapshot, asked: str, title: str) -> None:
    found, candidates = resolve(snapshot, asked)
    assert found is None and title in {row["title"] for row in candidates}
