"""Encodings of text files: their names, and which of them the lines of a file are probably in.

What is recognised is a proposal to the file's owner. A file is read in the encoding that its owner names: one for the
whole file, so that no row decides how another is decoded.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence

from mechanisms.errors import UsageError

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
"""Python's codec for each name. In all of them but UTF-16 no byte of another character is that of a line's end."""
_CONTAINED = {
    "ascii": UTF8, "utf-8-sig": UTF8, "gbk": "gb18030", "gb2312": "gb18030", "big5": "big5", "cp950": "big5",
    "shift_jis": "shift_jis", "euc_kr": "euc-kr", "iso8859-1": WINDOWS_1252, "iso8859-9": "windows-1254",
    "iso8859-8": "windows-1255", "iso8859-11": "windows-874", "tis-620": "windows-874",
}  # fmt: skip
"""Encodings that another one contains, as far as they say something."""
_THEN = "+"


def encodings_named(said: str) -> tuple[str, ...]:
    """The names of `ENCODINGS` in "A", or in "A+B": each line in the first of them that fits it.

    Raises:
        UsageError: one is not known.
    """
    known = {codecs.lookup(codec).name: name for name, codec in ENCODINGS.items()} | _CONTAINED
    names = []
    for each in said.split(_THEN):
        try:
            names.append(ENCODINGS.keys() & {each.strip().lower()} or {known[codecs.lookup(each.strip()).name]})
        except (LookupError, ValueError, UnicodeError) as error:
            raise UsageError(f"There is no encoding '{each}': name one of {', '.join(ENCODINGS)}.") from error
    found = tuple(name for [name] in names)
    if len(found) > 1 and any(name.startswith(UTF16) for name in found):
        raise UsageError("UTF-16 divides a file into lines otherwise than other encodings: it stands alone.")
    return found


def decoded(line: bytes, encodings: Sequence[str]) -> tuple[str, str | None]:
    """A line as text, by itself, and the encoding that it is in; None, with its bad bytes replaced, if in none.

    Args:
        encodings: names of `ENCODINGS`, as in `encodings_named`.
    """
    for name in encodings:
        try:
            return line.decode(ENCODINGS[name]), name
        except UnicodeDecodeError:
            continue
    return line.decode(ENCODINGS[encodings[-1]], "replace"), None


# Recognising: the encoding under which most of the other characters than ASCII's are usual ones of some language.

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
_MARKS = "“”‘’„–—…€«»°§£·•™©®´\u00a0"
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
"""For each encoding the usual characters of languages that are written in it, in small letters."""
_LEAST_OF_SEVERAL, _LEAST_OF_ONE = 0.2, 0.6
"""The least share of usual characters. Text of one language is a few thousand characters of East Asian ones."""
_BROKEN_LINES = 0.05
_FEWER_COUNT_MORE = 10_000
_REPLACED = "\ufffd"
_ALONE = re.compile(f"(?<=[A-Za-z])[^\\x00-\u036f{_MARKS}]|[^\\x00-\u036f{_MARKS}](?=[A-Za-z])")
"""A letter of another script beside a Latin one: there is none in the languages that have one byte for it."""


def recognised(lines: Sequence[bytes]) -> str | None:
    """The encoding that lines are probably in; None where no encoding makes usual text of them.

    Args:
        lines: that are not ASCII, or their beginnings.
    """
    for encodings, least in ((_SEVERAL_BYTES, _LEAST_OF_SEVERAL), (_ONE_BYTE, _LEAST_OF_ONE)):
        shares = {name: _usual(lines, name, languages) for name, languages in encodings.items()}
        best = max(shares, key=lambda name: shares[name])
        if shares[best] >= least:
            return best
    return None


def _usual(lines: Sequence[bytes], encoding: str, languages: Sequence[str]) -> float:
    """The share of usual characters among all that are not ASCII's, each line taken as of one language.

    Of two languages that explain as much, the one with fewer characters counts more.
    """
    usual = characters = broken = 0.0
    for line in lines:
        text = _as_far_as_it_goes(line, encoding)
        broken += _REPLACED in text
        if encoding in _ONE_BYTE:
            text = _ALONE.sub(_REPLACED, text)
        others = [each for each in text if not each.isascii()]
        characters += len(others)
        usual += max(
            sum(_weight(each, language) for each in others) * (1 - len(language) / 1e4) for language in languages
        )
    return usual / characters if characters and broken <= _BROKEN_LINES * len(lines) else 0.0


def fits(line: bytes, encoding: str) -> bool:
    """Whether a line, or the beginning of one, is in an encoding."""
    return _REPLACED not in _as_far_as_it_goes(line, encoding)


def _as_far_as_it_goes(line: bytes, encoding: str) -> str:
    return codecs.getincrementaldecoder(ENCODINGS[encoding])("replace").decode(line)


def _weight(characters: Sequence[str], language: str) -> float:
    """How many are usual: a small letter or a mark is one; a capital, which is rarer, half, as Cyrillic encodings swap
    the two."""
    whole = sum(each in _MARKS or each in language for each in characters)
    capitals = sum(each not in language and each.lower() in language for each in characters)
    return (whole + capitals / 2) * (1 - len(language) / _FEWER_COUNT_MORE)
