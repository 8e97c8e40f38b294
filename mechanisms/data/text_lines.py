"""The lines of a text file, each decoded by itself in the one encoding of the file, and proposals for that encoding.

A recognised encoding is a proposal to the file's owner. A file is read in the encoding that its owner names, one for
the whole file, so no row affects how another is decoded.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mechanisms.data.sources import RawFile
from mechanisms.data.table import Reading, ReadingQuestion
from mechanisms.errors import DataError, UsageError

UTF8, UTF16 = "utf-8", "utf-16"
WINDOWS_1252, ISO_2022_JP = "windows-1252", "iso-2022-jp"

ENCODINGS = {
    UTF8: "utf-8", UTF16: "utf-16", "utf-16-le": "utf-16-le", "utf-16-be": "utf-16-be",
    "gb18030": "gb18030", "big5": "big5hkscs", "shift_jis": "cp932", "euc-jp": "euc_jp", ISO_2022_JP: "iso2022_jp",
    "euc-kr": "cp949",
    WINDOWS_1252: "cp1252", "windows-1250": "cp1250", "windows-1251": "cp1251", "windows-1253": "cp1253",
    "windows-1254": "cp1254", "windows-1255": "cp1255", "windows-1256": "cp1256", "windows-1257": "cp1257",
    "windows-1258": "cp1258", "windows-874": "cp874",
    "iso-8859-2": "iso8859-2", "iso-8859-5": "iso8859-5", "iso-8859-7": "iso8859-7", "iso-8859-15": "iso8859-15",
    "koi8-r": "koi8-r", "koi8-u": "koi8-u", "macintosh": "mac-roman", "ibm850": "cp850", "ibm852": "cp852",
    "ibm866": "cp866",
}  # fmt: skip
"""Python's codec for each name. In all of them except UTF-16 the byte of a line end occurs in no other character."""
_CONTAINED = {
    "ascii": UTF8, "utf-8-sig": UTF8, "gbk": "gb18030", "gb2312": "gb18030", "big5": "big5", "cp950": "big5",
    "shift_jis": "shift_jis", "euc_kr": "euc-kr", "iso8859-1": WINDOWS_1252, "iso8859-9": "windows-1254",
    "iso8859-8": "windows-1255", "iso8859-11": "windows-874", "tis-620": "windows-874",
}  # fmt: skip
"""Encodings that are contained in another one, each with that one."""


def encodings_named(names: str) -> tuple[str, ...]:
    """The names of `ENCODINGS` in "A" or "A+B"; each line is decoded by the first that fits."""
    known = {codecs.lookup(codec).name: name for name, codec in ENCODINGS.items()} | _CONTAINED
    found = []
    for each in names.split("+"):
        own = each.strip().lower()
        try:
            found.append(own if own in ENCODINGS else known[codecs.lookup(own).name])
        except (LookupError, ValueError, UnicodeError) as error:
            raise UsageError(f"There is no encoding '{each}': name one of {', '.join(ENCODINGS)}.") from error
    if len(found) > 1 and any(name.startswith(UTF16) for name in found):
        raise UsageError("UTF-16 divides a file into lines in another way than other encodings: name it alone.")
    return tuple(found)


def _fits(line: bytes, encoding: str) -> bool:
    try:
        line.decode(ENCODINGS[encoding])
    except UnicodeDecodeError:
        return False
    return True


WRITTEN_TWICE = "\r\r\n"
"""The line end of a file in which line feeds were replaced by CR LF twice."""
_DOUBLE_RETURN = re.compile(rb"\r{2,}\n\Z")
_MARKS = {codecs.BOM_UTF8: UTF8, codecs.BOM_UTF16_LE: UTF16, codecs.BOM_UTF16_BE: UTF16}
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_BLOCK = 2**20
_SAMPLE = 200
"""The number of lines from which an encoding is recognised."""
_LONGEST = 2**12
"""The number of bytes of such a line that are used."""
_HALF_ZERO, _OTHER_HALF = 0.03, 0.1
"""For UTF-16 without a mark: the least share of zero bytes at even (or odd) positions, and the largest at the others.
The high bytes of separators and line ends are zero in any script."""
_ESCAPES = b"\x1b$"
"""The bytes that start Japanese text in ISO-2022-JP, which consists of ASCII bytes."""


@dataclass(repr=False)
class TextLines:
    """A text file.

    Attributes:
        encodings: the encodings of the lines, see `encodings_named`.
        declared: whether the owner or a mark stated the encoding. Otherwise the owner is asked about a line that is not
            UTF-8.
        found: the number of lines so far that are not in the first encoding, by their encoding; under None those with
            invalid bytes, which are replaced.
    """

    raw: RawFile
    mark: bytes
    encodings: tuple[str, ...]
    declared: bool
    found: Counter[str | None] = field(default_factory=Counter)

    @classmethod
    def of(cls, raw: RawFile, encoding: str | None, zeros: bool = False) -> TextLines:
        """The lines of a file in its owner's encoding, if one is declared; with `zeros` they may contain NULs.

        Raises:
            DataError: the file is not text, or its mark states another encoding.
            ReadingQuestion: the file is UTF-16 without a mark.
        """
        start = raw.start(_LONGEST)
        if start.startswith(_UTF32):
            raise DataError("This file is UTF-32: save the table as CSV (UTF-8) and try again.")
        mark = next((each for each in _MARKS if start.startswith(each)), b"")
        named = encodings_named(encoding) if encoding else ()
        if mark and named and named[0] != _MARKS[mark]:
            raise UsageError(f"The file's first bytes say that it is {_MARKS[mark]}: leave out the encoding.")
        made = cls(raw, mark, named or (_MARKS.get(mark, UTF8),), bool(named) or _MARKS.get(mark) == UTF16)
        if not named and (wide := _utf16_without_mark(start)):
            question = "The file looks like UTF-16, and does not begin with its mark."
            way = f"Give --encoding {wide} (in Python encoding='{wide}') if it is."
            raise ReadingQuestion(question, way, Reading(encoding=wide))
        if not zeros and not made.is_utf16:
            _check_no_zeros(raw)
        return made

    @property
    def is_utf16(self) -> bool:
        return self.encodings[0].startswith(UTF16)

    def lines(self, end: str) -> Iterator[bytes]:
        """The lines with their ends, one of `line_end`, as UTF-8; CR CR LF becomes CR LF.

        Raises:
            ReadingQuestion: a line is not UTF-8, and no other encoding is declared.
        """
        ends = "\n" if end == WRITTEN_TWICE else end
        lines = self._of_utf16(ends) if self.is_utf16 else self._of_bytes(ends)
        return (_DOUBLE_RETURN.sub(b"\r\n", line) for line in lines) if end == WRITTEN_TWICE else lines

    def _of_bytes(self, end: str) -> Iterator[bytes]:
        first = self.encodings[0]
        for number, line in enumerate(self._divided(end), start=1):
            if line.isascii() and _ESCAPES not in line:
                yield line
                continue
            if _ESCAPES in line and not self.declared:
                raise _question_of(number, ISO_2022_JP)
            found = next((each for each in self.encodings if _fits(line, each)), None)
            if found != first:
                if not self.declared:
                    raise _encoding_question(self.raw, number)
                self.found[found] += 1
            yield line.decode(ENCODINGS[found or self.encodings[-1]], "replace").encode()

    def _divided(self, end: str) -> Iterator[bytes]:
        with self.raw.opened() as file:
            file.seek(len(self.mark))
            if end == "\n":
                yield from file
                return
            with io.TextIOWrapper(file, "latin-1", newline=end) as text:
                yield from (line.encode("latin-1") for line in text)

    def _of_utf16(self, end: str) -> Iterator[bytes]:
        number = 0
        try:
            with io.TextIOWrapper(self.raw.opened(), ENCODINGS[self.encodings[0]], newline=end) as text:
                for line in text:
                    yield line.encode()
                    number += 1
        except UnicodeDecodeError as error:
            raise DataError(
                f"This is not a text file: it is not UTF-16 after line {number}. Save the table as CSV (UTF-8) "
                "and try again."
            ) from error

    def line_end(self) -> str:
        """The line end of the first line, which applies to all lines; a lone carriage return elsewhere belongs to its
        cell."""
        encoding = ENCODINGS[self.encodings[0]] if self.is_utf16 else "latin-1"
        with io.TextIOWrapper(self.raw.opened(), encoding, "replace", newline="") as text:
            header = next((line for line in text if line.strip()), "")
            if not header.endswith("\r"):
                return "\n"
            return WRITTEN_TWICE if next((line for line in text if line != "\r"), "") == "\r\n" else "\r"

    def remarks(self) -> Iterator[str]:
        """Remarks for the owner on how the lines so far were decoded."""
        if self.mark and self.is_utf16:
            yield "Read as UTF-16."
        for encoding in self.encodings[1:]:
            if self.found[encoding]:
                yield f"Lines that are not {self.encodings[0]}, read as {encoding}: {self.found[encoding]}."
        if self.found[None]:
            named = " or ".join(self.encodings)
            yield f"Lines with bytes that are not {named}, which are replaced: {self.found[None]}."


def _check_no_zeros(raw: RawFile) -> None:
    number = 1
    with raw.opened() as file:
        while block := file.read(_BLOCK):
            place = block.find(b"\x00")
            number += block.count(b"\n", 0, place if place >= 0 else None)
            if place >= 0:
                raise DataError(
                    f"Line {number} has a NUL byte, so this is not a text file: remove the byte, or save the "
                    "table as CSV (UTF-8) and try again."
                )


def _utf16_without_mark(start: bytes) -> str | None:
    if b"\x00" not in start or start[:2] in _MARKS:
        return None
    even, odd = (start[place::2].count(0) / max(1, len(start) // 2) for place in (0, 1))
    if max(even, odd) < _HALF_ZERO or min(even, odd) > _OTHER_HALF * max(even, odd):
        return None
    if 2 * start.count(0) <= start.count(b"\n"):  # in any script, every line end has one
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _encoding_question(raw: RawFile, line: int) -> ReadingQuestion:
    with raw.opened() as file:
        others = list(islice((_beginning(each) for each in file if not each.isascii()), 50 * _SAMPLE))
    bad = [each for each in others if _REPLACED in _as_far_as_it_goes(each, UTF8)]
    encoding = recognised(bad[:_SAMPLE])
    if 2 * len(bad) <= len(others):  # text in another encoding is hardly ever valid UTF-8 by chance
        encoding = f"{UTF8}+{encoding or WINDOWS_1252}"
    return _question_of(line, encoding)


def _question_of(line: int, encoding: str | None) -> ReadingQuestion:
    question = f"Line {line} is not UTF-8, " + (
        f"and the file looks like {encoding}." if encoding else "and no usual encoding makes sense of the file."
    )
    way = f"--encoding {encoding} (in Python encoding='{encoding}')" if encoding else "--encoding NAME"
    return ReadingQuestion(question, f"Give {way} if that is right, or the one that is.", Reading(encoding=encoding))


def _beginning(line: bytes) -> bytes:
    """The used bytes of a line; the last character may be incomplete only if the line is cut."""
    return line[:_LONGEST] if len(line) > _LONGEST else line.rstrip(b"\r\n") + b"\n"


# Recognition: the encoding in which most non-ASCII characters are common ones of some language.
#
# charset-normalizer 3.5.2 is worse for files with few lines. Correct recognitions on review sentences in 17 languages
# and 18 encodings: single sentences 137 of 146 here, 74 there (90 with only our encodings); groups of three 44 of 44
# here, 37 (40) there; groups of six to eight 22 of 22 here, 19 (21) there.

_HANZI = (
    "的一是不了在人有我他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能"
    "好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进"
    "把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使"
    "教西再平真听世气信北少关并内加化由却代军产入先山五太水万市眼体别处总才场师书比住员九笑性通目华报立马命张活难神数件"
    "安表原车白应路期叫死常提感金何更反合放做系计或司利受光王果亲界及今京务制解各任至清物台请谢买卖货款退换价钱店服务态度"
    "质量客帮助快慢差错坏收寄送用户网卡号码吗呢吧"
)
_TRADITIONAL = (
    "的一是不了在人有我他這中大來上個國到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可她里裡後小麼心多天而能"
    "好都然沒日於起還發成事只作當想看文無開手十用主行方又如前所本見經頭面公同三已老從動兩長知民樣現分將外但身些與高意進"
    "把法此實回二理美點月明其種聲全工己話兒者向情部正名定女問力機給等幾很業最間新什打便位因重被走電四第門相次東政海口使"
    "教西再平真聽世氣信北少關並內加化由卻代軍產入先山五太水萬市眼體別處總才場師書比住員九笑性通目華報立馬命張活難神數件"
    "安表原車白應路期叫死常提感金何更反合放做系計或司利受光王果親界及今京務制解各任至清物臺台請謝買賣貨款退換價錢店服務態度"
    "質量客幫助快慢差錯壞收寄送用戶網卡號碼嗎呢吧"
)
_KANA = (
    "ぁあぃいぅうぇえぉおかがきぎくぐけげこごさざしじすずせぜそぞただちぢっつづてでとどなにぬねのはばぱひびぴふぶぷへべぺほぼぽ"
    "まみむめもゃやゅゆょよらりるれろわをんァアィイゥウェエォオカガキギクグケゲコゴサザシジスズセゼソゾタダチッツテデトドナニ"
    "ネノハバパヒビピフブプヘベペホボポマミムメモャヤュユョヨラリルレロワヲンヴー、。「」日本人気時間今年店品商注文配送返金電話円"
)
_HANGUL = (
    "이다는을에가하의고지은도로사기리해어한서를요나인그아시니있자들정대수일습보제주부만안스전면장상게라데것거구으문원연조성"
    "비소과신경오우선용생여러저당했없되었적세마동물중국회무내진공실화모개방금입할네너무말유체분후식품행배송환불카드감님좋"
    "않싶언까왔같때받알려열결취계잘더못친절빨매직점"
)
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґђјљњћџў"
_LATIN = {
    "western": ["éèàçêëîïôûùüœæâ", "ñáíóúü¿¡", "ãõçàâêôáéíóú", "àèéìòù", "åäöé", "æøåé", "äöüß", "áðéíóúýþæö"],
    "central": ["ąćęłńóśźż", "áčďéěíňóřšťúůýžľĺŕôä", "áéíóöőúüű", "ăâîșțşţ", "čćđšž", "äöüß"],
    "turkish": ["çğıöşüİ"],
    "baltic": ["ąčęėįšųūž", "āčēģīķļņšūž", "äöõüšž"],
    "vietnamese": ["ăâđêôơưáàéèíóòúùý\u0300\u0301\u0303\u0309\u0323"],
}
_SIGNS = "“”‘’„–—…€«»°§£·•™©®´\u00a0"
_SEVERAL_BYTES = {
    "gb18030": [_HANZI], "big5": [_TRADITIONAL], "shift_jis": [_KANA], "euc-jp": [_KANA], "euc-kr": [_HANGUL],
}  # fmt: skip
_ONE_BYTE = {
    WINDOWS_1252: _LATIN["western"], "windows-1250": _LATIN["central"], "windows-1251": [_CYRILLIC],
    "koi8-r": [_CYRILLIC], "ibm866": [_CYRILLIC], "iso-8859-5": [_CYRILLIC],
    "windows-1253": ["αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώϊϋ"], "windows-1255": ["אבגדהוזחטיכלמנסעפצקרשתםןץףך"],
    "windows-1256": ["ابتثجحخدذرزسشصضطظعغفقكلمنهويةىءأإآؤئپچژگ،؟"],
    "windows-874": ["กขคงจชซญณดตถทธนบปผฝพฟภมยรลวศษสหอะาำิีึืุูเแโใไ็่้๊๋์"],
    "windows-1254": _LATIN["turkish"], "windows-1257": _LATIN["baltic"], "windows-1258": _LATIN["vietnamese"],
    "iso-8859-2": _LATIN["central"], "macintosh": _LATIN["western"], "ibm850": _LATIN["western"],
    "ibm852": _LATIN["central"],
}  # fmt: skip
"""For each encoding the common characters of languages that are written in it, in lower case."""
_LEAST_OF_SEVERAL, _LEAST_OF_ONE = 0.2, 0.6
"""The least share of usual characters. Text of one language is a few thousand characters of East Asian ones."""
_BROKEN_LINES = 0.05
_REPLACED = "\ufffd"
_ALONE = re.compile(f"(?<=[A-Za-z])[^\\x00-\u036f{_SIGNS}]|[^\\x00-\u036f{_SIGNS}](?=[A-Za-z])")
"""A letter of another script beside a Latin one, which does not occur in languages with one-byte encodings."""


def recognised(lines: Sequence[bytes]) -> str | None:
    """The probable encoding of lines that are not ASCII; None if no encoding gives plausible text."""
    for encodings, least in ((_SEVERAL_BYTES, _LEAST_OF_SEVERAL), (_ONE_BYTE, _LEAST_OF_ONE)):
        shares = {name: _usual(lines, name, languages) for name, languages in encodings.items()}
        best = max(shares, key=lambda name: shares[name])
        if shares[best] >= least:
            return best
    return None


def _usual(lines: Sequence[bytes], encoding: str, languages: Sequence[str]) -> float:
    """The share of common characters among all non-ASCII ones, if each line is in one language.

    A lower-case letter or a mark counts 1; a capital, which is rarer, counts half, because Cyrillic encodings swap the
    two. Of two languages that explain a line equally well, the one with fewer characters scores higher.
    """
    usual = characters = broken = 0.0
    for line in lines:
        text = _as_far_as_it_goes(line, encoding)
        broken += _REPLACED in text
        if encoding in _ONE_BYTE:
            text = _ALONE.sub(_REPLACED, text)
        others = [each for each in text if not each.isascii()]
        characters += len(others)
        explained = []
        for language in languages:
            whole = sum(each in _SIGNS or each in language for each in others)
            capitals = sum(each not in language and each.lower() in language for each in others)
            explained.append((whole + capitals / 2) * (1 - len(language) / 5_000))
        usual += max(explained)
    return usual / characters if characters and broken <= _BROKEN_LINES * len(lines) else 0.0


def _as_far_as_it_goes(line: bytes, encoding: str) -> str:
    return codecs.getincrementaldecoder(ENCODINGS[encoding])("replace").decode(line)
