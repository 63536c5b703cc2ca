"""Functions of one row: Spark's classes by the names under which the catalogue knows them.

Most classes are a name and their children. The others say something in a field (a unit, a seed, whether to raise), have
arguments in another order, or arguments that Spark fills in.
"""

from __future__ import annotations

from headwater.sql.analyzed.conversions import check_zone
from headwater.sql.analyzed.datatypes import dtype_of
from headwater.sql.analyzed.reading import Expressions, expression
from headwater.sql.analyzed.tree import Tree
from headwater.sql.calls import apply_function
from headwater.sql.functions.catalogue import FUNCTIONS
from headwater.sql.functions.typing import argument
from headwater.sql.json_values import reader_of
from headwater.sql.literals import text_literal
from headwater.sql.nodes import Literal, Node, Refused, call
from headwater.sql.types import DOUBLE

__all__ = ["NAMES"]

_MOST = 2**31 - 1
# Where the class is the name in other letters (ArrayJoin, array_join), the name is found by its letters.
_ALIKE = """
    Abs Acos Acosh AddMonths ArrayAppend ArrayCompact ArrayContains ArrayDistinct ArrayExcept ArrayInsert ArrayIntersect
    ArrayJoin ArrayMax ArrayMin ArrayPosition ArrayPrepend ArrayRemove ArrayRepeat ArrayUnion ArraysOverlap Ascii Asin
    Asinh Atan Atan2 Atanh Base64 Bin BitLength BRound Cbrt Ceil Coalesce Concat ConcatWs Contains Conv ConvertTimezone
    Cos Cosh Cot Crc32 Csc DateAdd DateDiff DateFromUnixDate DateSub DayOfMonth DayOfWeek DayOfYear Encode EndsWith Exp
    Expm1 Factorial FindInSet Flatten Floor FormatNumber FormatString FromUnixTime FromUTCTimestamp Get GetJsonObject
    Greatest Hex Hour Hypot InitCap JsonObjectKeys LastDay Least Left Length Levenshtein Log10 Log1p Log2 Lower MakeDate
    MapConcat MapContainsKey MapEntries MapFromArrays MapFromEntries MapKeys MapValues Mask Md5 Minute Month
    MonthsBetween NaNvl NextDay OctetLength Overlay Pow Quarter RegExpCount RegExpExtract RegExpExtractAll RegExpSubStr
    Reverse Right Rint RLike Round Sec Second Sha1 Sha2 ShiftLeft ShiftRight ShiftRightUnsigned Sin Sinh Slice SortArray
    SoundEx SplitPart Sqrt StartsWith SubstringIndex Tan Tanh ToNumber ToUnixTimestamp ToUTCTimestamp TryToNumber
    UnixDate UnixMicros UnixMillis UnixSeconds UnixTimestamp Upper UrlEncode WeekDay WeekOfYear WidthBucket
    Year
"""
_BY_LETTERS = {name.replace("_", ""): name for name in FUNCTIONS}
NAMES: dict[str, str] = {kind: _BY_LETTERS[kind.lower()] for kind in _ALIKE.split()} | {
    **{kind: function.name for function in FUNCTIONS.values() for kind in function.spark},
    "BitwiseCount": "bit_count",
    "BitwiseGet": "getbit",
    "Chr": "char",
    "CreateArray": "array",
    "CreateMap": "map",
    "CreateNamedStruct": "named_struct",
    "DateFormatClass": "date_format",
    "IsNaN": "isnan",
    "LengthOfJsonArray": "json_array_length",
    "Log": "ln",
    "Logarithm": "log",
    "Luhncheck": "luhn_check",
    "MicrosToTimestamp": "timestamp_micros",
    "MillisToTimestamp": "timestamp_millis",
    "SecondsToTimestamp": "timestamp_seconds",
    "Signum": "sign",
    "StringDecode": "decode",
    "StringInstr": "instr",
    "StringLPad": "lpad",
    "StringLocate": "locate",
    "StringRPad": "rpad",
    "StringRepeat": "repeat",
    "StringReplace": "replace",
    "StringSpace": "space",
    "StringSplit": "split",
    "StringToMap": "str_to_map",
    "StringTranslate": "translate",
    "ToCharacter": "to_char",
    "ToDegrees": "degrees",
    "ToRadians": "radians",
    "TruncDate": "trunc",
    "TruncTimestamp": "date_trunc",
    "TypeOf": "typeof",
}
# Flags that have to be as they are in ANSI mode.
_ANSI = {"failOnError": True, "ansiEnabled": True, "legacySizeOfNull": False, "legacyNegativeIndex": False}
_ANSI |= {
    "legacyCharsets": False,
    "legacyErrorAction": False,
    "useStringTypeWhenEmpty": False,
    "allowNullComparisonResult": False,
}
_ANSI |= {"followThreeValuedLogic": True, "nullOnDivideByZero": True}


def check_flags(tree: Tree, *besides: str) -> None:
    """Refuse a class whose flags say that Spark is not in ANSI mode."""
    check_zone(tree)
    for flag, wanted in _ANSI.items():
        if flag not in besides and tree.fields.get(flag, wanted) != wanted:
            raise Refused(
                f"Spark's {tree.kind} with {flag}={str(not wanted).lower()}", "set spark.sql.ansi.enabled to true"
            )


@expression(*NAMES)
def _function(reader: Expressions, tree: Tree) -> Node:
    check_flags(tree)
    return apply_function(NAMES[tree.kind], reader.children(tree))


@expression("Substring")
def _substring(reader: Expressions, tree: Tree) -> Node:
    value, start, length = reader.children(tree)
    whole = isinstance(length, Literal) and length.value == _MOST
    return apply_function("substring", [value, start] if whole else [value, start, length])


@expression("StringTrim", "StringTrimLeft", "StringTrimRight")
def _trim(reader: Expressions, tree: Tree) -> Node:
    name = {"StringTrim": "trim", "StringTrimLeft": "ltrim", "StringTrimRight": "rtrim"}[tree.kind]
    given = reader.children(tree)
    return apply_function(f"{name} of" if len(given) == 2 else name, given)


@expression("BinaryPad")
def _pad(reader: Expressions, tree: Tree) -> Node:
    return apply_function(str(tree.fields["funcName"]), reader.children(tree))


@expression("RegExpReplace")
def _replace(reader: Expressions, tree: Tree) -> Node:
    *given, start = reader.children(tree)
    if not isinstance(start, Literal) or start.value != 1:
        raise Refused("regexp_replace() from a place on", "leave the place out")
    return apply_function("regexp_replace", given)


@expression("RegExpInStr")
def _place(reader: Expressions, tree: Tree) -> Node:
    return apply_function("regexp_instr", reader.children(tree)[:2])  # Spark does not look at the group either


@expression("RoundCeil", "RoundFloor")
def _to_place(reader: Expressions, tree: Tree) -> Node:
    value, places = tree.children
    # Of a double Spark takes the digits that it prints; the catalogue does that itself.
    if value.kind == "Cast" and dtype_of(value.fields["dataType"]).equals(_DIGITS):
        inner = reader.read(value.children[0])
        if inner.dtype == DOUBLE:
            return apply_function(tree.kind.removeprefix("Round").lower(), [inner, reader.read(places)])
    return apply_function(tree.kind.removeprefix("Round").lower(), [reader.read(value), reader.read(places)])


_DIGITS = dtype_of("decimal(30,15)")


@expression("Murmur3Hash", "XxHash64")
def _hash(reader: Expressions, tree: Tree) -> Node:
    if tree.fields.get("seed") != 42:
        raise Refused(f"Spark's {tree.kind} with another seed", "use hash() or xxhash64()")
    return apply_function("hash" if tree.kind == "Murmur3Hash" else "xxhash64", reader.children(tree))


@expression("Unhex", "UnBase64")
def _bytes(reader: Expressions, tree: Tree) -> Node:
    (text,) = reader.children(tree)
    name, form = ("unhex", "hex") if tree.kind == "Unhex" else ("unbase64", "base64")
    if tree.fields.get("failOnError"):
        return apply_function("to_binary", [text, text_literal(form)])
    return apply_function(name, [text])


@expression("ToBinary")
def _to_binary(reader: Expressions, tree: Tree) -> Node:
    name = "try_to_binary" if tree.fields.get("nullOnInvalidFormat") else "to_binary"
    return apply_function(name, reader.children(tree))


@expression("ElementAt")
def _element(reader: Expressions, tree: Tree) -> Node:
    name = "element_at" if tree.fields.get("failOnError") else "try_element_at"
    return apply_function(name, reader.children(tree))


@expression("Size")
def _size(reader: Expressions, tree: Tree) -> Node:
    check_flags(tree)
    return apply_function("size", reader.children(tree))


@expression("JsonToStructs")
def _from_json(reader: Expressions, tree: Tree) -> Node:
    _check_options(tree)
    (text,) = reader.children(tree)
    dtype = dtype_of(tree.fields["schema"])
    reader_of(dtype)  # which refuses types that it cannot read
    return call("from_json", (argument("s", text, "from_json"),), dtype, fallible=True)


@expression("StructsToJson")
def _to_json(reader: Expressions, tree: Tree) -> Node:
    _check_options(tree)
    return apply_function("to_json", reader.children(tree))


def _check_options(tree: Tree) -> None:
    check_zone(tree)
    if tree.fields.get("options") != "Map()":
        raise Refused("from_json() or to_json() with options", "leave the options out")


@expression("ArraysZip")
def _zip(reader: Expressions, tree: Tree) -> Node:
    names = [reader.read(n) for n in tree.trees("names")]
    return apply_function("arrays_zip", [p for pair in zip(names, reader.children(tree), strict=True) for p in pair])


@expression("TimestampAdd", "TimestampDiff")
def _units(reader: Expressions, tree: Tree) -> Node:
    check_zone(tree)
    name = "timestampadd" if tree.kind == "TimestampAdd" else "timestampdiff"
    return apply_function(name, [text_literal(str(tree.fields["unit"])), *reader.children(tree)])


@expression("ParseToDate", "ParseToTimestamp")
def _parse(reader: Expressions, tree: Tree) -> Node:
    check_zone(tree)
    safe = not tree.fields.get("ansiEnabled" if tree.kind == "ParseToDate" else "failOnError")
    name = "to_date" if tree.kind == "ParseToDate" else "to_timestamp"
    if tree.kind == "ParseToTimestamp" and tree.fields["dataType"] == "timestamp_ntz":
        if safe:
            raise Refused("try_to_timestamp_ntz()", "use try_to_timestamp() and a cast")
        name = "to_timestamp_ntz"
    return apply_function(f"try_{name}" if safe else name, reader.children(tree))


@expression("MakeTimestamp")
def _make(reader: Expressions, tree: Tree) -> Node:
    check_flags(tree, "failOnError")
    name = "make_timestamp_ntz" if tree.fields["dataType"] == "timestamp_ntz" else "make_timestamp"
    return apply_function(name if tree.fields.get("failOnError", True) else f"try_{name}", reader.children(tree))


@expression("ParseUrl", "UrlDecode")
def _address(reader: Expressions, tree: Tree) -> Node:
    name = "parse_url" if tree.kind == "ParseUrl" else "url_decode"
    return apply_function(name if tree.fields.get("failOnError", True) else f"try_{name}", reader.children(tree))


@expression("SecondWithFraction", "YearOfWeek")
def _part(reader: Expressions, tree: Tree) -> Node:
    check_zone(tree)
    part = "second" if tree.kind == "SecondWithFraction" else "yearofweek"
    return apply_function("date_part", [text_literal(part), *reader.children(tree)])


@expression("JsonTuple")
def _json_tuple(_: Expressions, __: Tree) -> Node:
    raise Refused("json_tuple() inside an expression", "use LATERAL VIEW json_tuple(…)")
