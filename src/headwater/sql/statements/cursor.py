"""The cursor: a place in a statement, and the questions that readers of statements ask there.

Each reader is a short function over a cursor that goes through the words in order: `take` asks for words that may be
there, `expect` for those that must, `name` and `column` for names, `text` and `number` for constants, `inside` and
`until` for a piece of SQL that somebody else reads. What is not as expected is an error that underlines the place and
shows the whole form.

Invariant: a piece handed out by `inside` or `until` holds whole quotes and balanced parentheses, so it can be put
between parentheses elsewhere without changing what is outside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeVar

from headwater.base.errors import Action, ExpressionError, Hint, InputError
from headwater.sql.fragment import Fragment, Parameters
from headwater.sql.tokens import Token, tokenize, without_comments

__all__ = ["Cursor", "check_all_used", "check_kind"]

T = TypeVar("T")
_OPENING, _CLOSING = {"(": ")", "[": "]"}, {")": "(", "]": "["}


class Cursor:
    """A place in the statement ``text``; ``form`` is how the statement that is being read is written, for hints."""

    def __init__(self, text: str, parameters: Parameters | None = None) -> None:
        self.text = text
        self.form = ""
        self.tokens: list[Token] = list(tokenize(text))
        self.at = 0
        self._plain = without_comments(text)
        self._parameters = _checked(text, self.tokens, {} if parameters is None else parameters)

    # --- looking

    def token(self, ahead: int = 0) -> Token | None:
        """The token that comes next, or so many further on; None at the end."""
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else None

    def sees(self, *words: str) -> bool:
        """Do these words (or marks) come next? Names in backticks and texts are no words."""
        found = [self.token(i) for i in range(len(words))]
        return all(
            t is not None and t.kind in ("word", "mark") and t.word == w for t, w in zip(found, words, strict=True)
        )

    @property
    def done(self) -> bool:
        return self.at >= len(self.tokens)

    def fail(self, why: str, hint: Hint | None = None, *, at: Token | None = None) -> NoReturn:
        """Stop with an error at this place."""
        raise self.failure(why, hint, at=at)

    def failure(self, why: str, hint: Hint | None = None, *, at: Token | None = None) -> ExpressionError:
        """An error at this place."""
        here = at or self.token()
        position = here.start if here is not None else len(self.text)
        return ExpressionError.statement(self.text, why, position, hint or f"write {self.form}")

    # --- words

    def take(self, *words: str) -> bool:
        """Step over these words if they come next."""
        found = self.sees(*words)
        self.at += len(words) if found else 0
        return found

    def expect(self, *words: str) -> None:
        """Step over these words, which must come next."""
        for word in words:
            if not self.take(word):
                self.fail(f"{'`' + word + '`' if not word.isalpha() else word} is expected {self._instead()}")

    def one_of(self, *words: str) -> str:
        """The one of these words that comes next, which must."""
        for word in words:
            if self.take(word):
                return word
        raise self.failure(f"{', '.join(words[:-1])} or {words[-1]} is expected {self._instead()}")

    def end(self) -> None:
        """Nothing may come now."""
        if not self.done:
            self.fail("nothing more is expected here")

    def _instead(self) -> str:
        return "here" if not self.done else "at the end"

    # --- names and constants

    def identifier(self, what: str) -> str:
        """One name, bare or in backticks."""
        token = self.token()
        if token is None or token.kind not in ("word", "name"):
            self.fail(f"{what} is expected {self._instead()}")
        self.at += 1
        name = token.value if token.kind == "name" else token.text
        assert isinstance(name, str)
        if not name:
            self.fail(f"{what} is empty", "put a name between the backticks", at=token)
        return name

    def path(self, what: str) -> tuple[str, ...]:
        """A name with dots between its parts."""
        parts = [self.identifier(what)]
        while self.take("."):
            parts.append(self.identifier(what))
        return tuple(parts)

    def table(self, what: str = "the name of a table") -> str:
        """The name of a table, its parts joined by dots."""
        start = self.token()
        parts = self.path(what)
        if parts[0].lower() in ("delta", "parquet") and len(parts) == 2 and "/" in parts[1]:
            self.fail("a table is named here by its path", Action("name_table"), at=start)
        if any("." in p for p in parts):
            self.fail("a dot inside backticks", "put each part into backticks of its own: `a`.`b`", at=start)
        return ".".join(parts)

    def text_value(self, what: str) -> str:
        """A text in quotes, or a parameter that holds one."""
        value = self.constant(what)
        if not isinstance(value, str):
            self.fail(f"{what} is expected, in quotes", at=self.tokens[self.at - 1])
        return value

    def number(self, what: str) -> int:
        """A whole number, or a parameter that holds one."""
        value = self.constant(what)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.fail(f"{what} is expected: a whole number", at=self.tokens[self.at - 1])
        return value

    def constant(self, what: str) -> object:
        """A number, text, boolean or NULL, or the value of a parameter."""
        token = self.token()
        if token is None:
            self.fail(f"{what} is expected at the end")
        self.at += 1
        if token.kind == "text":
            return token.value
        if token.kind == "number" and token.text.isdecimal():
            return int(token.text)
        if token.kind in ("parameter", "question"):
            given = self.fragment(self.at - 1, self.at).parameters
            return next(iter(given.values())) if isinstance(given, Mapping) else given[0]
        if token.word in ("TRUE", "FALSE", "NULL"):
            return {"TRUE": True, "FALSE": False, "NULL": None}[token.word]
        raise self.failure(f"{what} is expected here", at=token)

    # --- pieces that somebody else reads

    def fragment(self, first: int, last: int) -> Fragment:
        """The piece from one token up to another, with the parameters that stand in it."""
        start, end = self.tokens[first].start, self.tokens[last - 1].end
        inside = self.tokens[first:last]
        if isinstance(self._parameters, Mapping):
            names = [t.text[1:] for t in inside if t.kind == "parameter"]
            own: Parameters = {name: self._parameters[name] for name in names}
        else:
            before = sum(t.kind == "question" for t in self.tokens[:first])
            count = sum(t.kind == "question" for t in inside)
            own = list(self._parameters[before : before + count])
        return Fragment(self._plain[start:end], own, self.text, start)

    def until(self, *words: str, what: str) -> Fragment:
        """The piece up to one of these words (or marks) outside parentheses and CASE, or up to the end."""
        first, open_at = self.at, list[Token]()
        while (token := self.token()) is not None:
            if not open_at and self._is_one_of(token, words):
                break
            self._nest(token, open_at)
            self.at += 1
        if open_at and open_at[-1].text in _OPENING:
            self.fail(f"the `{open_at[-1].text}` that opens here is never closed", at=open_at[-1])
        if first == self.at:
            self.fail(f"{what} is expected {self._instead()}")
        return self.fragment(first, self.at)

    def rest(self, what: str) -> Fragment:
        """The piece up to the end."""
        return self.until(what=what)

    def inside(self, what: str) -> Fragment:
        """The piece between the parentheses that open here."""
        opening = self.token()
        self.expect("(")
        piece = self.until(")", what=what)
        if not self.take(")"):
            self.fail("the `(` that opens here is never closed", at=opening)
        return piece

    def _is_one_of(self, token: Token, words: Sequence[str]) -> bool:
        if token.kind == "mark":
            return token.text in words
        before = self.tokens[self.at - 1].text if self.at else ""
        after = self.token(1)
        part_of_a_name = before == "." or (after is not None and after.text == ".")
        return token.kind == "word" and token.word in words and not part_of_a_name

    def _nest(self, token: Token, open_at: list[Token]) -> None:
        if token.kind == "mark" and token.text in _OPENING:
            open_at.append(token)
        elif token.kind == "mark" and token.text in _CLOSING:
            while open_at and open_at[-1].word == "CASE":
                open_at.pop()
            if not open_at or open_at.pop().text != _CLOSING[token.text]:
                self.fail(f"the `{token.text}` closes nothing", f"open it with `{_CLOSING[token.text]}`")
        elif self._is_one_of(token, ("CASE",)):
            open_at.append(token)
        elif self._is_one_of(token, ("END",)) and open_at and open_at[-1].word == "CASE":
            open_at.pop()

    def listed(self, read: Callable[[], T]) -> list[T]:
        """What ``read`` gives, once or more, with commas between."""
        found = [read()]
        while self.take(","):
            found.append(read())
        return found

    def in_parentheses(self, read: Callable[[], T]) -> list[T]:
        """As `listed`, between parentheses."""
        self.expect("(")
        found = self.listed(read)
        self.expect(")")
        return found


def _checked(text: str, tokens: Sequence[Token], parameters: Parameters) -> Parameters:
    """``parameters``, if each of them is named in the statement and each name has one."""
    check_kind(parameters)
    named = [t for t in tokens if t.kind == "parameter"]
    asked = [t for t in tokens if t.kind == "question"]
    if isinstance(parameters, Mapping):
        missing = [t for t in named if t.text[1:] not in parameters] + asked
        known = ", ".join(f":{name}" for name in parameters)
    else:
        missing = named + asked[len(parameters) :]
        known = _counted(len(parameters), "value") if parameters else ""
    if missing:
        token = missing[0]
        shown = token.text if token.kind == "parameter" else f"the {_ordinal(asked.index(token) + 1)} `?`"
        by_name = token.kind == "parameter"
        hint = Action("give_parameter", name=token.text[1:]) if by_name else Action("give_parameters")
        why = f"{shown} has no value" + (f" (given: {known})" if known else "")
        raise ExpressionError.statement(text, why, token.start, hint)
    check_all_used(text, parameters, tokens)
    return parameters


def check_kind(parameters: object) -> None:
    """Raise if something else is passed than a mapping or a sequence."""
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Mapping | Sequence):
        raise InputError.bad_argument("parameters", parameters, "a mapping for :name, or a sequence for ?")


def check_all_used(text: str, parameters: Parameters, tokens: Sequence[Token]) -> None:
    """Raise if a value is given that no parameter of the text takes: it may be misspelled."""
    if isinstance(parameters, Mapping):
        names = list(dict.fromkeys(t.text for t in tokens if t.kind == "parameter"))
        unused = [name for name in parameters if f":{name}" not in names]
        if unused:
            hint = f"leave it out; the SQL names {', '.join(names) if names else 'no parameter'}"
            raise ExpressionError.statement(text, f"a value is given for :{unused[0]}, which is not in it", None, hint)
        return
    asked = sum(t.kind == "question" for t in tokens)
    if len(parameters) > asked:
        why = f"{_counted(len(parameters), 'value')} for {_counted(asked, '`?`', '`?`')}"
        raise ExpressionError.statement(text, why, None, "pass one value for each `?`")


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number or 'no'} {one if number == 1 else many or one + 's'}"


def _ordinal(number: int) -> str:
    first = ("first", "second", "third", "fourth", "fifth")
    return first[number - 1] if number <= len(first) else f"{number}th"
