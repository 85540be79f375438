"""Tokens to a syntax tree, by operator precedence with an explicit stack.

No function here calls itself: 100,000 opening parentheses are an error at the 65th, not a deep Python stack.
What nests (parentheses, NOT, signs) waits on `_operators`; finished pieces wait on `_operands` together with
the height of their tree, which is limited too, since the evaluator and its readers do recurse.
"""

from __future__ import annotations

from enum import IntEnum
from sys import intern

from holdfast.errors import FilterError
from holdfast.model.arithmetic import calculate, negate
from holdfast.model.hints import IN_DOUBLE_QUOTES
from holdfast.model.lexer import END, KEYWORD, NAME, NUMBER, STRING, SYMBOL, Token, tokens_of
from holdfast.model.like import PatternError, parse_like
from holdfast.model.limits import FilterLimits
from holdfast.model.syntax import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Or,
    Sign,
)
from holdfast.model.values import INTEGER_MAX, INTEGER_MIN, is_unicode_text

EVERYTHING = Literal(True)


class Binding(IntEnum):
    """How tightly an operator holds its operands; a parenthesis holds nothing until it is closed."""

    PARENTHESIS = 0
    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    SUM = 5
    PRODUCT = 6
    SIGN = 7


BINARY = {
    "OR": Binding.OR,
    "AND": Binding.AND,
    "=": Binding.COMPARISON,
    "<>": Binding.COMPARISON,
    "<": Binding.COMPARISON,
    "<=": Binding.COMPARISON,
    ">": Binding.COMPARISON,
    ">=": Binding.COMPARISON,
    "+": Binding.SUM,
    "-": Binding.SUM,
    "*": Binding.PRODUCT,
    "/": Binding.PRODUCT,
    "%": Binding.PRODUCT,
}
TIGHTER = {
    Binding.OR: Binding.AND,
    Binding.AND: Binding.NOT,
    Binding.SUM: Binding.PRODUCT,
    Binding.PRODUCT: Binding.SIGN,
}
BETWEEN_LOW, BETWEEN_HIGH = "BETWEEN", "BETWEEN … AND"
PREDICATE_KEYWORDS = frozenset({"BETWEEN", "IN", "LIKE", "IS", "NOT"})
CONNECTIVES = (And, Or, Not)
PREDICATES = (Comparison, Between, In, Like, IsNull)

AN_OPERAND = "an attribute, a literal, '(', NOT or a sign"
A_TEST_FOR_NULL = "IS NULL or IS NOT NULL behind an attribute"
A_CONDITION = "a comparison, BETWEEN, IN, LIKE, IS NULL, a boolean attribute, TRUE or FALSE"
AN_OPERATOR = "an operator, AND, OR or the end of the filter"


def parse(text: str, limits: FilterLimits) -> Node:
    """The syntax tree of `text`; an empty text is the condition TRUE."""
    check_text(text, limits)
    if not is_unicode_text(text):
        offset = next(i for i, c in enumerate(text) if "\ud800" <= c <= "\udfff")
        raise FilterError("the text holds a lone surrogate, which is no Unicode text", text, offset)
    return Parser(text, tokens_of(text, limits), limits).parse()


def check_text(text: str, limits: FilterLimits) -> None:
    """Refuses what is no text, and a text beyond the limit before any work is spent on it."""
    if not isinstance(text, str):
        raise TypeError(f"a filter is written as a str, not {type(text).__name__}")
    if not isinstance(limits, FilterLimits):
        raise TypeError(f"limits are a FilterLimits, not {type(limits).__name__}")
    if len(text) > limits.text_bytes or (len(text) * 4 > limits.text_bytes and _utf8_size(text) > limits.text_bytes):
        # The limit counts bytes, the place counts characters.
        encoded = text[: limits.text_bytes + 1].encode("utf-8", "surrogatepass")[: limits.text_bytes + 1]
        offset = sum(byte & 0xC0 != 0x80 for byte in encoded) - 1
        raise FilterError(
            f"the text exceeds the limit text_bytes = {limits.text_bytes}", text, offset, "a shorter filter"
        )


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class Parser:
    """The state of one parse; `parse` is called once."""

    def __init__(self, text: str, tokens: list[Token], limits: FilterLimits) -> None:
        self._text = text
        self._tokens = tokens
        self._limits = limits
        self._at = 0
        self._operators: list[tuple[Binding, str, bool, int]] = []  # binding, symbol, negated or prefix, offset
        self._operands: list[Node] = []
        self._heights: list[int] = []
        self._starts: list[int] = []  # where the text of an operand begins
        self._nesting = 0
        self._predicates = 0
        self._after_predicate = False

    def parse(self) -> Node:
        if self._tokens[0][0] is END:
            return EVERYTHING
        expecting_operand = True
        while True:
            kind, value, offset = self._tokens[self._at]
            self._at += 1
            if expecting_operand:
                expecting_operand = self._take_operand(kind, value, offset)
            elif kind is END:
                break
            else:
                expecting_operand = self._take_operator(kind, value, offset)
        self._reduce(Binding.OR)
        if self._operators:
            _, _, _, offset = self._operators[-1]
            raise self._error("a parenthesis is not closed", offset, "')'")
        self._count_condition(self._operands[0], 0, self._starts[0])
        return self._operands[0]

    # ---- operands

    def _take_operand(self, kind: str, value: str | int | float, offset: int) -> bool:
        """Takes one token where an operand must begin; says whether one must still begin behind it."""
        if kind is NAME:
            self._push(Attribute(intern(str(value))), 1, offset)
        elif kind is NUMBER:
            self._push(Literal(self._checked_number(value, offset)), 1, offset)  # type: ignore[arg-type]
        elif kind is STRING:
            self._push(Literal(value), 1, offset)
        elif kind is KEYWORD and (value == "TRUE" or value == "FALSE"):
            self._push(Literal(value == "TRUE"), 1, offset)
        elif kind is KEYWORD and value == "NOT":
            if self._operators and self._operators[-1][0] > Binding.NOT:
                raise self._error(f"NOT can't follow {self._operators[-1][1]}", offset, "parentheses around NOT …")
            self._nest(Binding.NOT, "NOT", offset)
            return True
        elif kind is SYMBOL and value == "(":
            self._nest(Binding.PARENTHESIS, "(", offset)
            return True
        elif kind is SYMBOL and (value == "-" or value == "+"):
            self._nest(Binding.SIGN, str(value), offset)
            return True
        else:
            is_null = kind is KEYWORD and value == "NULL"
            raise self._unexpected(kind, value, offset, A_TEST_FOR_NULL if is_null else AN_OPERAND)
        self._after_predicate = False
        return False

    def _checked_number(self, number: int | float, offset: int) -> int | float:
        if number.__class__ is int and number > INTEGER_MAX:
            # The smallest integer is written as a sign and a literal that alone is one too large.
            negated = self._operators and self._operators[-1][:2] == (Binding.SIGN, "-")
            if not (negated and number == -INTEGER_MIN):
                raise self._error("an integer is outside the range of 64 bits", offset, "at most 9223372036854775807")
        return number

    def _nest(self, binding: Binding, symbol: str, offset: int) -> None:
        self._nesting += 1
        if self._nesting > self._limits.depth:
            raise self._too_deep(offset)
        self._operators.append((binding, symbol, True, offset))

    def _push(self, node: Node, height: int, start: int) -> None:
        if height > self._limits.depth:
            raise self._too_deep(self._tokens[self._at - 1][2])
        self._operands.append(node)
        self._heights.append(height)
        self._starts.append(start)

    # ---- operators

    def _take_operator(self, kind: str, value: str | int | float, offset: int) -> bool:
        """Takes one token where an operator may stand; says whether an operand must follow."""
        if kind is SYMBOL and value == ")":
            self._close_parenthesis(offset)
            return False
        if kind is KEYWORD and value in PREDICATE_KEYWORDS:
            return self._take_predicate(str(value), offset)
        binding = BINARY.get(value) if kind is SYMBOL or kind is KEYWORD else None  # type: ignore[arg-type]
        if binding is None:
            raise self._unexpected(kind, value, offset, AN_OPERATOR)
        symbol = str(value)
        if binding is Binding.AND:
            self._reduce(Binding.SUM)
            if self._operators and self._operators[-1][1] is BETWEEN_LOW:
                _, _, negated, start = self._operators.pop()
                self._operators.append((Binding.COMPARISON, BETWEEN_HIGH, negated, start))
                return True
        if binding is Binding.COMPARISON:
            self._reduce(Binding.SUM)
            self._refuse_chain(symbol, offset)
        elif binding > Binding.COMPARISON and self._after_predicate:
            raise self._unexpected(kind, value, offset, "AND, OR or the end of the filter")
        else:
            self._reduce(TIGHTER[binding])  # a chain waits, and is built in one go
        if binding < Binding.NOT:
            self._count_condition(self._operands[-1], offset, self._starts[-1])
        self._operators.append((binding, symbol, False, offset))
        return True

    def _take_predicate(self, keyword: str, offset: int) -> bool:
        """[NOT] BETWEEN, [NOT] IN, [NOT] LIKE, IS [NOT] NULL, behind their operand."""
        self._reduce(Binding.SUM)
        self._refuse_chain(keyword, offset)
        negated = keyword == "NOT"
        if negated:
            kind, value, offset = self._next()
            if kind is not KEYWORD or value not in ("BETWEEN", "IN", "LIKE"):
                raise self._unexpected(kind, value, offset, "BETWEEN, IN or LIKE behind NOT")
            keyword = str(value)
        if keyword == "BETWEEN":
            self._operators.append((Binding.COMPARISON, BETWEEN_LOW, negated, offset))
            return True
        operand, height, start = self._pop()
        predicate: Node
        if keyword == "IN":
            predicate = In(operand, self._in_values())
        elif keyword == "LIKE":
            predicate = self._like(operand)
        else:
            predicate, negated = self._is_null(operand, offset)
        self._push_predicate(predicate, height + 1, negated, offset, start)
        self._after_predicate = True
        return False

    def _push_predicate(self, predicate: Node, height: int, negated: bool, offset: int, start: int) -> None:
        self._count_predicate(offset)
        if negated:
            self._push(Not(predicate), height + 1, start)
        else:
            self._push(predicate, height, start)

    def _pop(self) -> tuple[Node, int, int]:
        """The last operand with its height and where it begins."""
        return self._operands.pop(), self._heights.pop(), self._starts.pop()

    def _refuse_chain(self, symbol: str, offset: int) -> None:
        if self._after_predicate or (self._operators and self._operators[-1][0] is Binding.COMPARISON):
            raise self._error(f"{symbol} can't follow another comparison", offset, "AND, OR, or parentheses")

    def _in_values(self) -> tuple[int | float | str, ...]:
        self._expect_symbol("(")
        values: list[int | float | str] = []
        while True:
            kind, value, offset = self._next()
            sign = ""
            if kind is SYMBOL and (value == "-" or value == "+"):
                sign = str(value)
                kind, value, offset = self._next()
            if kind is NUMBER:
                values.append(self._signed(sign, value, offset))  # type: ignore[arg-type]
            elif kind is STRING and not sign:
                values.append(value)
            else:
                raise self._unexpected(kind, value, offset, "a string or a number")
            if len(values) > self._limits.in_values:
                raise self._error(
                    f"an IN list exceeds the limit in_values = {self._limits.in_values}", offset, "a shorter list"
                )
            kind, value, offset = self._next()
            if kind is SYMBOL and value == ")":
                return tuple(values)
            if kind is not SYMBOL or value != ",":
                raise self._unexpected(kind, value, offset, "',' or ')'")

    def _signed(self, sign: str, number: int | float, offset: int) -> int | float:
        number = -number if sign == "-" else number
        if number.__class__ is int and not INTEGER_MIN <= number <= INTEGER_MAX:
            raise self._error("an integer is outside the range of 64 bits", offset, "at most 9223372036854775807")
        return number

    def _like(self, operand: Node) -> Node:
        kind, pattern, offset = self._next()
        if kind is not STRING:
            raise self._unexpected(kind, pattern, offset, "a pattern in quotes")
        escape: str | int | float = ""
        if self._tokens[self._at][:2] == (KEYWORD, "ESCAPE"):
            self._at += 1
            kind, escape, escape_offset = self._next()
            if kind is not STRING or len(str(escape)) != 1:
                raise self._unexpected(kind, escape, escape_offset, "one character in quotes")
        limits = self._limits
        try:
            return Like(operand, parse_like(str(pattern), str(escape), limits.like_percents, limits.like_underscores))
        except PatternError as problem:
            raise self._error(str(problem), offset) from None

    def _is_null(self, operand: Node, offset: int) -> tuple[Node, bool]:
        kind, value, at = self._next()
        negated = kind is KEYWORD and value == "NOT"
        if negated:
            kind, value, at = self._next()
        if kind is not KEYWORD or value != "NULL":
            raise self._unexpected(kind, value, at, "NULL" if negated else "NULL or NOT NULL")
        if not isinstance(operand, Attribute):
            raise self._error("only an attribute can be NULL", offset, "the name of an attribute before IS")
        return IsNull(operand.name), negated

    def _close_parenthesis(self, offset: int) -> None:
        self._reduce(Binding.OR)
        if not self._operators:
            raise self._error("a parenthesis is closed that was not opened", offset, AN_OPERATOR)
        self._operators.pop()
        self._nesting -= 1
        self._after_predicate = False

    # ---- reductions

    def _reduce(self, binding: Binding) -> None:
        """Applies the waiting operators that hold at least as tightly as `binding`."""
        operators = self._operators
        while operators and operators[-1][0] >= binding:
            if operators[-1][0] in TIGHTER:
                self._reduce_chain(operators[-1][0])
                continue
            held, symbol, flag, offset = operators.pop()
            right, right_height, right_start = self._pop()
            if held is Binding.NOT:
                self._nesting -= 1
                self._count_condition(right, offset, right_start)
                self._push(Not(right), right_height + 1, offset)
            elif held is Binding.SIGN:
                self._nesting -= 1
                self._push_sign(symbol, right, right_height, offset)
            elif symbol is BETWEEN_LOW:
                raise self._error("BETWEEN has no upper bound", offset, "BETWEEN low AND high")
            elif symbol is BETWEEN_HIGH:
                low, low_height, _ = self._pop()
                operand, height, start = self._pop()
                height = max(height, low_height, right_height) + 1
                self._push_predicate(Between(operand, low, right), height, flag, offset, start)
            else:
                left, left_height, start = self._pop()
                self._count_predicate(offset)
                self._push(Comparison(symbol, left, right), max(left_height, right_height) + 1, start)

    def _reduce_chain(self, held: Binding) -> None:
        """Applies the operators of one binding that wait side by side; a chain grows in width, not in height."""
        start = len(self._operators)
        while start and self._operators[start - 1][0] is held:
            start -= 1
        operators = self._operators[start:]
        size = len(operators) + 1
        operands, heights, starts = self._operands[-size:], self._heights[-size:], self._starts[-size:]
        del self._operators[start:], self._operands[-size:], self._heights[-size:], self._starts[-size:]
        if held is Binding.AND or held is Binding.OR:
            self._count_condition(operands[-1], operators[-1][3], starts[-1])
            connective = And if held is Binding.AND else Or
            parts = [part for operand in operands for part in _parts(connective, operand)]
            height = max(h + (not isinstance(o, connective)) for h, o in zip(heights, operands, strict=True))
            self._push(connective(tuple(parts)), height, starts[0])
            return
        first = operands[0]
        rest = [(operator[1], operand) for operator, operand in zip(operators, operands[1:], strict=True)]
        if isinstance(first, Arithmetic) and BINARY[first.rest[0][0]] is held:  # (a - b) - c is a - b - c
            rest = [*first.rest, *rest]
            first = first.first
        done = 0  # literals in front are calculated now, as far as arithmetic has a result
        while done < len(rest) and (folded := _folded(rest[done][0], first, rest[done][1])) is not None:
            first = folded
            done += 1
        if done == len(rest):
            self._push(first, 1, starts[0])
        else:
            self._push(Arithmetic(first, tuple(rest[done:])), max(heights) + 1, starts[0])

    def _push_sign(self, symbol: str, operand: Node, height: int, start: int) -> None:
        if isinstance(operand, Literal) and operand.value.__class__ in (int, float):
            value = -operand.value if symbol == "-" else operand.value
            # Only the literal 2**63 negates into range from outside of it.
            folded = value if value == INTEGER_MIN else negate(negate(value))
            if folded is not None:
                self._push(Literal(folded), 1, start)
                return
        self._push(Sign(symbol == "-", operand), height + 1, start)

    # ---- limits and errors

    def _count_condition(self, node: Node, offset: int, start: int) -> None:
        """An attribute, TRUE or FALSE as a condition is a predicate too; what is never a boolean is no condition."""
        if isinstance(node, PREDICATES + CONNECTIVES):
            return
        if not isinstance(node, Attribute) and not (isinstance(node, Literal) and node.value.__class__ is bool):
            is_string = isinstance(node, Literal) and node.value.__class__ is str
            raise self._error(f"a {'string' if is_string else 'number'} is no condition", start, A_CONDITION)
        self._count_predicate(offset)

    def _count_predicate(self, offset: int) -> None:
        self._predicates += 1
        if self._predicates > self._limits.predicates:
            raise self._error(
                f"the filter exceeds the limit predicates = {self._limits.predicates}", offset, "fewer predicates"
            )

    def _next(self) -> Token:
        token = self._tokens[self._at]
        if token[0] is not END:
            self._at += 1
        return token

    def _expect_symbol(self, symbol: str) -> None:
        kind, value, offset = self._next()
        if kind is not SYMBOL or value != symbol:
            raise self._unexpected(kind, value, offset, f"'{symbol}'")

    def _unexpected(self, kind: str, value: str | int | float, offset: int, expected: str) -> FilterError:
        problem = "the filter ends too early" if kind is END else f"unexpected {kind} {str(value)[:40]!r}"
        if kind is NAME and self._text[offset] == '"':
            expected += f"; {IN_DOUBLE_QUOTES}"
        return self._error(problem, offset, expected)

    def _too_deep(self, offset: int) -> FilterError:
        return self._error(f"nesting exceeds the limit depth = {self._limits.depth}", offset, "fewer levels")

    def _error(self, problem: str, offset: int, expected: str = "") -> FilterError:
        return FilterError(problem, self._text, offset, expected)


def _folded(symbol: str, left: Node, right: Node) -> Literal | None:
    """Two literals as one, where arithmetic has a result; `1 / 0` stays, and is UNKNOWN when evaluated."""
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return None
    result = calculate(symbol, left.value, right.value)
    return None if result is None else Literal(result)


def _parts(connective: type[And] | type[Or], node: Node) -> tuple[Node, ...]:
    return node.operands if isinstance(node, connective) else (node,)
