"""Words for what is not in the language: how a construct is shown, and what to write in its place."""

import ast

OPERATORS: dict[type[ast.AST], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.LShift: "<<", ast.RShift: ">>"}
INSTEAD = {  # what to write where Python's operator is no part of the language
    **{"+": "add(a, b) or addu(a, b)", "-": "sub(a, b) or subu(a, b)", "*": "mul(a, b) or mulu(a, b)"},
    **{"<<": "shl(a, k) or shlu(a, k)", ">>": "asr(a, k) or shru(a, k)", "//": "div(a, b), divu(a, b), or n >> 1"},
    **{"/": "div(a, b) or divu(a, b)", "&": "and_(a, b)", "|": "or_(a, b)", "^": "xor(a, b)", "~": "not_(a)"},
    **{"%": "subu(a, mulu(divu(a, b), b))", "**": "the number, or a constant of the module"},
}
SYMBOLS: dict[type[ast.AST], str] = {
    **OPERATORS,
    **{ast.FloorDiv: "//", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Mod: "%"},
    **{ast.Pow: "**", ast.MatMult: "@", ast.Invert: "~", ast.Not: "not", ast.UAdd: "+"},
}
BUILTINS = {  # what strangers reach for
    **{"abs": "max_(a, sub(0, a))", "min": "min_(a, b) or minu(a, b)", "max": "max_(a, b) or maxu(a, b)"},
    **{"len": "the array's length, a parameter", "int": "i32(a) or u32(a)", "sum": "a loop with add(total, x[i])"},
    **{"divmod": "divu(a, b) and subu(a, mulu(divu(a, b), b))", "pow": "a loop, or the number", "print": "nothing"},
}
KEYWORDS = (
    "auto bool break case char const continue default do double else enum extern false float for goto if inline int "
    "long register restrict return short signed sizeof static struct switch true typedef union unsigned void volatile "
    "while asm main"
)
C_WORDS = frozenset(KEYWORDS.split())


def words(node: ast.AST) -> str:
    text = ast.unparse(node).split("\n")[0]
    return f"`{text if len(text) <= 60 else text[:57] + '…'}`"


def instead(node: ast.AST) -> str:
    match node:
        case ast.While():
            return "loop with `for i in range(n)`, which always ends, and leave it early with `break`"
        case ast.Continue() | ast.Pass():
            return "turn the condition around (ge and lt) and put the rest of the block under it"
        case ast.AugAssign() | ast.AnnAssign() | ast.Assign():
            return "write `name = primitive(name, …)` or `array[i] = …`, one at a time"
        case ast.For():
            return "leave out `else:`, and loop with one name over range(…)"
        case ast.IfExp():
            return "write selectu(flag, a, b), min_ or max_"
        case ast.Constant():
            return "use whole numbers"
    return "use names, numbers, a[i], primitives, kernels, for, if and return"
