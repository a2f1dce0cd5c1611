"""Parses the scalar expressions of op.def into lists of words: words.py OP.DEF WORD.H > scalar.inc.

One list per elementwise row, as static data that ir/op.c includes, and one for the gradient of each of its operands.  A
term that an expression writes twice is one term of the list.  What is wrong in a row is told with its line, and fails
the build.
"""

import re
import sys

OPERATORS = [{"+": "ADD", "-": "SUB"}, {"*": "MUL", "/": "DIV"}]  # from the loosest to the tightest; all go left
OPERANDS = "xyz"
REVERSE = "rd"  # in a gradient, after the operands: the result and its gradient
BINARY = set("ADD SUB MUL DIV MOD LT LE EQ NE AND OR XOR MAX MIN POW FMOD BIT_AND BIT_OR BIT_XOR SHIFT_LEFT SHIFT_RIGHT FOLD_IN"
             .split())
EXPRESSION, DOC = 3, 7  # fields of a row


class Wrong(Exception):
    pass


def read_words(text):
    """The words of enum Word, with how many terms each is applied to."""
    names = re.findall(r"\bWORD_(\w+),", text)
    arity = {name: 2 if name in BINARY else 3 if name == "SELECT" else 1 for name in names}
    return {name: count for name, count in arity.items() if name not in ("OPERAND", "NUMBER")}


class Parser:
    """Reads one expression; `terms` are the keys (word, arguments, number) in the order they are computed."""

    def __init__(self, text, words, operands):
        self.tokens = re.findall(r"\d+(?:\.\d+)?|\w+|[^\w\s]", text) + ["end"]
        self.words, self.operands, self.terms = words, operands, []
        self.infix(0)  # the last term
        if self.tokens[0] != "end":
            raise Wrong(f"`{self.tokens[0]}` is not expected here")

    def term(self, word, args=(), number=0.0):
        key = (word, tuple(args), number)
        if key not in self.terms:
            self.terms.append(key)
        return self.terms.index(key)

    def accept(self, token):
        if self.tokens[0] == token:
            return self.tokens.pop(0)
        return None

    def expect(self, token):
        if not self.accept(token):
            raise Wrong(f"`{token}` is expected before `{self.tokens[0]}`")

    def infix(self, level):
        if level == len(OPERATORS):
            return self.unary()
        left = self.infix(level + 1)
        while self.tokens[0] in OPERATORS[level]:
            word = OPERATORS[level][self.tokens.pop(0)]
            left = self.term(word, (left, self.infix(level + 1)))
        return left

    def unary(self):
        if not self.accept("-"):
            return self.primary()
        if self.tokens[0][0].isdigit():
            return self.term("NUMBER", number=-float(self.tokens.pop(0)))
        return self.term("NEG", (self.unary(),))

    def primary(self):
        if self.accept("("):
            inner = self.infix(0)
            self.expect(")")
            return inner
        token = self.tokens.pop(0) if self.tokens[0] != "end" else "end"
        if token[0].isdigit():
            return self.term("NUMBER", number=float(token))
        if len(token) == 1 and token in self.operands:
            return self.term("OPERAND", (self.operands.index(token),))
        if token not in self.words:
            raise Wrong(f"unknown word `{token}`")
        self.expect("(")
        args = [self.infix(0)]
        while self.accept(","):
            args.append(self.infix(0))
        self.expect(")")
        if len(args) != self.words[token]:
            raise Wrong(f"{token} takes {self.words[token]}, not {len(args)}")
        return self.term(token, args)


def split_fields(text):
    """The arguments of a macro, from behind its opening parenthesis; None where the closing one is missing."""
    fields, depth, start = [], 0, 0
    for token in re.finditer(r'"(?:\\.|[^"\\])*"|[(),]', text):
        if token[0] == "(":
            depth += 1
        elif depth and token[0] == ")":
            depth -= 1
        elif not depth and token[0] in "),":
            fields.append(text[start:token.start()].strip())
            start = token.end()
            if token[0] == ")":
                return fields
    return None


def print_list(name, expression, words, operands):
    parser = Parser(expression, words, operands)
    print(f"/* {expression} */")
    print(f"static const ScalarTerm {name}_term[] = {{")
    for at, (word, args, number) in enumerate(parser.terms):
        uses = sum(other[1].count(at) for other in parser.terms if other[0] != "OPERAND")
        shown = ", ".join(str(arg) for arg in args) or "0"
        print(f"    {{WORD_{word}, {words.get(word, 0)}, {{{shown}}}, {uses}, {number!r}}},")
    print("};")
    print(f'_Static_assert({len(parser.terms)} <= MOST_TERMS, "{name}");')
    print(f"static const ScalarList {name}_scalar = {{{len(parser.terms)}, {name}_term}};")


def print_row(fields, words):
    if len(fields) <= DOC:
        raise Wrong("fields are missing")
    name, operands, gradients = fields[1], OPERANDS[:len(fields[2].split())], fields[DOC + 1:]
    if len(gradients) != len(operands):
        raise Wrong(f"{len(gradients)} gradients of {len(operands)} operands")
    print_list(name, fields[EXPRESSION], words, operands)
    for operand, gradient in zip(operands, gradients):
        print_list(f"{name}_{operand}", gradient, words, operands + REVERSE)
    lists = ", ".join(f"&{name}_{operand}_scalar" for operand in operands)
    print(f"static const ScalarList *const {name}_gradient[] = {{{lists}}};")


def main():
    table, header = sys.argv[1:]
    with open(header, encoding="utf-8") as file:
        words = read_words(file.read())
    with open(table, encoding="utf-8") as file:
        text = file.read()
    failed = False
    for row in re.finditer(r"^ELEMENTWISE\(", text, re.MULTILINE):
        fields = split_fields(text[row.end():])
        try:
            if fields is None:
                raise Wrong("`)` is missing")
            print_row(fields, words)
        except Wrong as wrong:
            failed = True
            line = text.count("\n", 0, row.start()) + 1
            print(f"{table}:{line}: {fields[1] if fields else 'row'}: {wrong}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
