"""One encoding for the whole file, named by its owner, proposed where nobody did; no line decides on another."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.data.sources import RawFile
from mechanisms.data.table import ReadingQuestion
from mechanisms.data.text_lines import ENCODINGS, TextLines, encodings_named, recognised
from mechanisms.errors import DataError, UsageError
from tests.data.files import read

CHINESE = ["谢谢你的帮助", "申请贷款需要什么材料", "什么时候发货", "服务态度很差", "质量不错，物流很快"]
TAIWANESE = ["謝謝你的幫助", "申請貸款需要什麼材料", "什麼時候發貨", "服務態度很差", "請問如何退款"]
JAPANESE = ["カードをなくしました", "注文した商品が届きません", "店員さんの対応が良かった", "ネットが遅い"]
KOREAN = ["카드를 잃어버렸어요", "주문한 상품이 도착하지 않았습니다", "너무 비싸요", "앱이 자꾸 멈춰요"]
RUSSIAN = ["я потерял свою карту", "когда придёт мой заказ", "спасибо за помощь", "не работает приложение"]
FRENCH = ["j'ai perdu ma carte déjà", "où est ma commande", "merci à vous, c'était très bien"]
TEXTS = {
    "gb18030": [CHINESE],
    "big5": [TAIWANESE],
    "shift_jis": [JAPANESE],
    "euc-jp": [JAPANESE],
    "iso-2022-jp": [JAPANESE],
    "euc-kr": [KOREAN],
    "windows-1251": [RUSSIAN, ["я загубив свою картку", "дякую за допомогу", "як повернути гроші, будь ласка"]],
    "koi8-r": [RUSSIAN],
    "ibm866": [RUSSIAN],
    "windows-1252": [
        FRENCH,
        ["ich möchte mein Geld zurück", "die Lieferung ist zu spät", "können Sie mir helfen", "Größe"],
        ["no recibí mi pedido", "¿cuándo llega?", "muy buena atención, gracias señor"],
        ["tack för hjälpen", "när kommer min beställning", "hvor er min ordre på", "jeg har mistet kortet"],
        ["the café was good", "he said “hello” to me", "it’s late"],
    ],
    "windows-1250": [["zgubiłem swoją kartę", "dziękuję za pomoc", "ztratil jsem kartu", "žluťoučký kůň úpěl"]],
    "windows-1253": [["έχασα την κάρτα μου", "πότε θα έρθει η παραγγελία", "ευχαριστώ για τη βοήθεια"]],
    "windows-1254": [["kartımı kaybettim", "siparişim ne zaman gelir", "yardımınız için teşekkürler"]],
    "windows-1255": [["איבדתי את הכרטיס שלי", "מתי תגיע ההזמנה", "תודה על העזרה"]],
    "windows-1256": [["لقد فقدت بطاقتي", "متى تصل طلبيتي", "شكرا على المساعدة"]],
    "windows-874": [["ฉันทำบัตรหาย", "สินค้าจะมาถึงเมื่อไหร่", "ขอบคุณสำหรับความช่วยเหลือ"]],
}
OF_LINES = sorted(set(ENCODINGS) - {"utf-16", "utf-16-le", "utf-16-be"})
ANY_TEXT = st.sampled_from([*CHINESE, *JAPANESE, *RUSSIAN, *FRENCH])
IN_SOME = st.tuples(ANY_TEXT, st.sampled_from(["utf-8", "gb18030", "cp932", "cp1252", "iso2022_jp"]))
ANY_LINE = (st.binary(max_size=30) | IN_SOME.map(lambda each: each[0].encode(each[1], "ignore"))).map(
    lambda raw: raw.replace(b"\n", b"").replace(b"\x00", b"")
)


def content(texts: list[str], count: int = 24) -> str:
    rows = (
        f"{text.replace(',', ' ')} {i},{'ab'[i % 2]}\n"
        for i, text in enumerate(itertools.islice(itertools.cycle(texts), count))
    )
    return "text,label\n" + "".join(rows)


def lines(raw: bytes, encoding: str) -> list[str]:
    return [line.decode() for line in TextLines.of(RawFile("x.csv", raw), encoding, zeros=True).lines("\n")]


@pytest.mark.parametrize(
    ("encoding", "texts"), [(encoding, texts) for encoding, each in TEXTS.items() for texts in each]
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_an_encoding_is_proposed_and_read_as_soon_as_it_is_named(encoding, texts, suffix):
    whole = content(texts)
    if suffix == "jsonl":
        whole = "".join(
            f'{{"text": "{text}", "label": "{label}"}}\n'
            for text, label in (row.rsplit(",", 1) for row in whole.split("\n")[1:-1])
        )
    raw = whole.encode(ENCODINGS[encoding])
    with pytest.raises(ReadingQuestion, match=f"--encoding {encoding} ") as question:
        read(raw, suffix)
    assert question.value.proposed.encoding == encoding
    assert not any(text in str(question.value) for text in texts)
    table = read(raw, suffix, encoding=encoding)
    cells = [cell.rsplit(" ", 1)[0] for cell in table.frame["text"]][: len(texts)]
    assert cells == [text.replace(",", " ") for text in texts]
    assert table.remarks == ()


def test_what_no_encoding_makes_sense_of_is_asked_for_without_a_proposal():
    assert recognised([]) is None
    with pytest.raises(ReadingQuestion, match="--encoding NAME") as question:
        read(b"text,label\n" + bytes(range(0x80, 0x100)) + b",a\n")
    assert question.value.proposed.encoding is None


@pytest.mark.parametrize("encoding", [*OF_LINES, "utf-8+windows-1252", "utf-8+gb18030"])
@given(st.lists(ANY_LINE, min_size=1, max_size=6), ANY_LINE, st.integers(0, 6))
def test_whatever_bytes_a_line_has_every_other_line_is_decoded_as_before(encoding, others, hostile, place):
    others = [b"x" + line + b"\n" for line in others]  # no line is a mark of the whole file
    place %= len(others) + 1
    more = [*others[:place], b"x" + hostile + b"\n", *others[place:]]
    before, after = lines(b"".join(others), encoding), lines(b"".join(more), encoding)
    assert len(before) == len(others)
    del after[place]
    assert after == before


@pytest.mark.parametrize(
    ("said", "known"),
    [("GBK", "gb18030"), ("gb2312", "gb18030"), ("Shift-JIS", "shift_jis"), ("cp949", "euc-kr"), ("UTF8", "utf-8"),
     ("latin-1", "windows-1252"), ("CP1251", "windows-1251"), ("utf-8-sig", "utf-8"), ("iso-8859-11", "windows-874")],
)  # fmt: skip
def test_an_encoding_goes_by_any_of_its_names(said, known):
    assert encodings_named(said) == (known,)
    assert encodings_named(f"utf-8+{said}") == ("utf-8", known)


@pytest.mark.parametrize(
    "said", ["none", "hex", "idna", "utf-7", "unicode_escape", "cp037", "", "a\0b", "utf-8+utf-16"]
)
def test_what_is_no_encoding_of_lines_is_refused(said):
    with pytest.raises(UsageError, match="encoding|UTF-16"):
        encodings_named(said)


def test_the_mark_of_a_file_counts_and_contradicts_what_is_said():
    for mark, own in (("utf-8-sig", "utf-8"), ("utf-16", "utf-16")):
        raw = content(FRENCH).encode(mark)
        assert read(raw).frame.equals(read(raw, encoding=own).frame)
        with pytest.raises(UsageError, match="first bytes say"):
            read(raw, encoding="gb18030")


@pytest.mark.parametrize("texts", [FRENCH, CHINESE, ["质量不错物流很快" * 9]])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_its_mark_is_asked_about(encoding, texts):
    raw = content(texts).encode(encoding)
    with pytest.raises(ReadingQuestion, match=f"--encoding {encoding} "):
        read(raw)
    assert len(read(raw, encoding=encoding).frame) == 24


def test_a_zero_byte_is_refused_with_its_line_however_far_down_it_stands():
    rows = "".join(f"text number {i},a\n" for i in range(200_000))
    with pytest.raises(DataError, match="^Line 200002 has a NUL byte, so this is not a text file"):
        read(f"text,label\n{rows}on\0e,b\n")
