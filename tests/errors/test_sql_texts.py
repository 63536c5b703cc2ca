"""How errors about SQL are put: a short first line, the caret under what is at fault, and no name that nobody wrote.

In the corpus ``«`` marks the place of the caret.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError
from headwater.base.errors.wording import underline
from headwater.lakehouse import Lake

_CORPUS = r"""
select «idd from t
select id, «t.idd from t
select id from «tt
select id from t «where
select id frm «t where id = 1
select id«,, s from t
select id from t where s = 5 and «nosuch(id)
select «id + s from t
select regexp_replace(s, «'(', '') from t
select s rlike «'[' from t
select id, split(s, «'*') from t
select s like «'%\\x' from t
select to_date(s, «'qqqq') from t
select date_format(day, «'bbb') from t
select to_timestamp(«'x')
select cast(«300 as tinyint)
select id, «s, count(*) from t group by id
select id from t order by «7
select id from t limit «x
select id from t where id in («select id, y from u)
select «id from t join u on t.id = u.id
select t.id from t join u using («s)
select * from t where id = «'a'
select * from t where «'a'
select * from t where «id
select id from t where id > 0 and «x'zz' = s
select «st.zz from t
select id, «s.q from t
select id, «explode(id) from t
select case when «id then 1 end from t
select if(«id, 1, 2) from t
select id, date«'2024-13-01' from t
select id from t union «select id, s from t
select id, «coalesce(id, xs) from t
select id, «row_number() from t
select id from t tablesample («10 percent)
select from_json(s, «'a INTT') from t
select id, «'abc
select id, «`abc from t
insert into t (id, «nosuch) values (1, 2)
update t set «idd = 1
update t set id = «nosuch(1)
delete from t where «idd = 1
delete from t where «id
delete from t where id = 1 and cast(s as «nosuch) = 1
merge into t using u on t.id = «u.idd when matched then delete
create table z (a «intt)
select transform(xs, x -> «y + 1) from t
select id from «t version as of 99
select * except («zz) from t
select «x.* from t
with q as (select «idd from t) select * from q
select id from t where exists (select 1 from u where «u.zz = t.id)
select decode(encode('a', 'utf-8'), «'nope')
select id, «not id from t
select id, «-s from t
select max(id) filter (where «s) from t
select id from t where «sum(id) > 1
select id from t group by rollup(«zz)
select * from t natural join u on «1 = 1
select id, «:p
select id from t where id = «any (select 1)
select id from t where id = 1 or «all (select 1)
select 'ä', '日本', «idd from t
select id,	«idd from t
select 'it''s' || "x", «idd from t
select /* «« */ id, -- «
  «idd from t
"""
_LINES = [
    line for line in _CORPUS.replace("/* «« */ id, -- «\n", "/* no */ id, -- yes\x01").strip().splitlines() if line
]
_TEXTS = [line.replace("\x01", "\n") for line in _LINES]
# Fail as they run: no place is known, and the text is shown instead.
_FAILING = (
    ("select cast(s as int) from t", "try_cast"),
    ("select n + 1 from t", "wider type"),
    ("select id / (id - 1) from t", "try_divide"),
    ("select xs[5] from t", "try_element_at"),
    ("select (select id from t)", "LIMIT 1"),
    ("select element_at(xs, 0) from t", "element_at(xs, 1)"),
    ("delete from t where cast(s as int) = 1", "try_cast"),
    ("update t set n = n + 1", "wider type"),
)
_INTERNAL = re.compile(r"__\w+|\w#\d|\bc\d+\b|\bq\d+\b|\bi\d+\b|headwater!")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = hw.connect(str(tmp_path_factory.mktemp("manners")))
    rows = {
        "id": pa.array([1, 2], pa.int32()),
        "s": ["a", "9x"],
        "n": pa.array([2**31 - 1, 0], pa.int32()),
        "day": [date(2024, 1, 1)] * 2,
        "xs": [[1], [2]],
        "st": [{"p": 1, "q": "z"}] * 2,
    }
    made.write("t", pa.table(rows))
    made.write("u", pa.table({"id": [1, 2], "y": ["c", "d"]}))
    return made


def _error(lake: Lake, text: str) -> HeadwaterError:
    with pytest.raises(HeadwaterError) as caught:
        lake.sql(text).to_arrow()
    return caught.value


def _check_words(error: HeadwaterError) -> None:
    first, *rest = str(error).split("\n")
    assert len(first) < 120, first
    assert not _INTERNAL.search(str(error)), error
    assert "Spark SQL" not in (error.hint or ""), error
    assert error.hint, error
    shown = [line for line in rest if line.startswith("  where: ")]
    assert len(shown) == 1, error


@pytest.mark.parametrize("marked", _TEXTS)
def test_the_caret_stands_under_what_is_at_fault(marked: str, lake: Lake) -> None:
    text = marked.replace("«", "")
    error = _error(lake, text)
    _check_words(error)
    assert error.position == marked.index("«"), error
    where, caret = str(error).split("\n")[1:3]
    assert caret.strip() == "^", error
    token = text[marked.index("«") :].split("\n")[0][:12]
    if text.isascii() and "\t" not in text:
        assert where[caret.index("^") :].startswith(token), error


@pytest.mark.parametrize(("text", "way_out"), _FAILING)
def test_a_failure_shows_a_way_out(text: str, way_out: str, lake: Lake) -> None:
    error = _error(lake, text)
    _check_words(error)
    assert way_out in (error.hint or "")
    assert "rows" not in (error.hint or ""), "the expression is at fault, not the rows"


def test_a_long_query_is_not_repeated(lake: Lake) -> None:
    many = ", ".join(f"id AS id{i}" for i in range(200))
    for text, at in ((f"select {many}, idd from t", "idd from"), (f"select idd, {many} from t", "idd, id")):
        error = _error(lake, text)
        _check_words(error)
        where, caret = str(error).split("\n")[1:3]
        assert len(where) < 200
        assert where[caret.index("^") :].startswith(at)
    error = _error(lake, f"select {many},\n  idd\nfrom t")
    assert str(error).split("\n")[1] == "  where: line 2:   idd"
    assert len(str(_error(lake, f"select {many}, from t"))) < 500


@pytest.mark.parametrize(
    ("text", "position", "before"),
    [
        ("select\tx", 7, "      \t"),
        ("'日本' x", 5, "       "),
        ("'e\u0301' x", 5, "    "),
        ("a\r\nb x", 5, "        " + "  "),
    ],
)
def test_tabs_and_wide_characters_keep_the_caret_in_its_column(text: str, position: int, before: str) -> None:
    assert underline(text, position).split("\n")[-1] == " " * 9 + before + "^"


def test_hints_do_not_send_spark_sql_to_spark_sql() -> None:
    sources = Path(hw.__file__).parent.rglob("*.py")
    assert not [p.name for p in sources if "write it in Spark SQL" in p.read_text("utf-8")]
