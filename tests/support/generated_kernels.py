"""Random kernels as source text, and arguments for them.

Every choice comes from one `random.Random`, so a seed is a kernel. The writer keeps a rough interval of each expression
and clamps most of what could leave its type, so that many kernels can be proved; the rest must be refused.
"""

import contextlib
import itertools
import random
import re

from checking import load
from generated_expressions import STORAGE, WORD, Expressions

from sensorsim.language.arguments import arguments

HEAD = "from sensorsim.language import *\n\n"
SIZES = ("n", "2 * n", "n + 1", "n * m", "7", "1 << b", "n + m", "n * n")
LENGTHS = {
    "n": ("1, 6", "0, 5", "2, 9", "1, 12", "1, 70"),
    "m": ('1, 6, "", at_most="n"', '0, 6, "", at_most="n"', "1, 4"),
    "b": ("0, 3", "1, 2"),
}


class Writer(Expressions):
    """Writes one module: formats, one or two helper kernels, and the kernel `k`."""

    def __init__(self, seed, secret=0.0):
        self.random, self.secret = random.Random(seed), secret
        self.names = itertools.count()
        self.helpers = []

    def chance(self, part):
        return self.random.random() < part

    def one(self, *choices):
        return self.random.choice(choices)

    def fresh(self, stem):
        return f"{stem}{next(self.names)}"

    # formats

    def module(self):
        lines = []
        self.formats = {}
        for place in range(5):
            storage = self.one(*STORAGE)
            least, most = STORAGE[storage]
            ends = [least, most, 0, 1, 9, 100, self.random.randint(least, most)]
            lo, hi = sorted(max(least, min(most, self.one(*ends))) for _ in range(2))
            secret = f", secret={self.chance(self.secret)}" if self.secret else ""
            self.formats[f"F{place}"] = storage, lo, hi
            lines.append(f'F{place} = Q("f{place}", "{storage}", 0, {lo}, {hi}, ""{secret})')
        self.lengths = {"n": self.one(*LENGTHS["n"])}
        if self.chance(0.6):
            self.lengths["m"] = self.one(*LENGTHS["m"])
        if self.chance(0.3):
            self.lengths["b"] = self.one(*LENGTHS["b"])
        lines.append(f"BIG = {self.one(2**31 - 1, -(2**31), 12345678, 3)}")
        for place in range(self.one(1, 1, 2)):
            lines += ["", *self.kernel(f"h{place}", helper=True)]
        return HEAD + "\n".join([*lines, "", *self.kernel("k", helper=False)]) + "\n"

    # kernels

    def kernel(self, name, helper):
        self.values, self.arrays, self.filled, self.counters = {}, {}, set(), {}
        self.budgets, self.flags, self.indices = {}, [], {}
        self.looping = 0
        given = []
        for _ in range(self.one(1, 2, 3)):
            made, form = self.fresh("p"), self.one(*self.formats)
            storage, lo, hi = self.formats[form]
            self.values[made] = storage[0] + "32", lo, hi
            given.append((made, form))
        if self.chance(0.3) and not self.lengths["n"].startswith("0"):
            made = self.fresh("q")
            self.values[made] = "u32", 0, int(self.lengths["n"].split(", ")[1]) - 1
            self.below = made
            given.append((made, 'Below("n")'))
        else:
            self.below = None
        for _, _, arrays, texts, _ in self.helpers:  # arrays to pass on
            for own in arrays:
                made = self.fresh("a")
                self.arrays[made] = arrays[own]
                given.append((made, texts[own]))
        for _ in range(self.one(0, 0, 1, 2) if helper else self.one(0, 1, 2)):
            made, form = self.fresh("a"), self.one(*self.formats)
            kind = self.one("in", "in", "out", "out", "both", "table")
            size = self.size()
            storage, lo, hi = self.formats[form]
            text = f'{form}["{size}"]'
            if kind == "table":
                entries = tuple(self.random.randint(lo, hi) for _ in range(7))
                size, text = "7", f'Array({form}, "7", {entries})'
            self.arrays[made] = storage, lo, hi, size, kind
            given.append((made, f"out({text})" if kind == "out" else text))
        given += [(length, f'Length("{length}", {ends}{"" if "at_most" in ends else ", " + repr("")})')
                  for length, ends in self.lengths.items()]  # fmt: skip
        self.result = self.one(*self.formats) if self.chance(0.8) else None
        self.pad = "    "
        self.lines = []
        for _ in range(self.random.randint(2, 4 if helper else 7)):
            self.statement()
        if self.result is not None:
            self.emit(f"return {self.fitting(*self.formats[self.result])}")
        head = f"def {name}({', '.join(f'{made}: {kind}' for made, kind in given)}) -> {self.result}:"
        if helper:
            self.helpers.append((name, given, dict(self.arrays), dict(given), self.result))
        return ["@kernel()", head, *self.lines]

    def size(self):
        allowed = [size for size in SIZES if all(word in self.lengths for word in size.split() if word.isalpha())]
        if self.lengths["n"].startswith("0"):
            allowed = ["n + 1", "7"]
        return self.one(*allowed)

    def emit(self, text):
        self.lines.append(self.pad + text)

    # statements

    def statement(self):
        kinds = ["let"] * 4 + ["store"] * 3 + ["fill", "for", "for", "if", "flag", "call", "call", "index"]
        if len(self.pad) >= 12:
            kinds = ["let"] * 3 + ["store"] * 2
        getattr(self, "make_" + self.one(*kinds))()
        if self.chance(0.03) and len(self.pad) > 4:
            self.early()

    def make_let(self):
        if self.budgets and self.chance(0.5):
            name = self.one(*self.budgets)
            kind, lo, hi = self.budgets[name]
            if self.looping and self.chance(0.3) and kind == "i32":
                self.emit(f"{name} = add({name}, {self.within('i32', -9, 9)})")
            else:
                text = self.within(kind, lo, hi)
                self.emit(f"{name} = {text if text != name else 0}")
            return
        name, kind = self.fresh("v"), self.one("u32", "i32")
        least, most = WORD[kind]
        lo, hi = sorted(max(least, min(most, self.random.randint(-300, 3000))) for _ in range(2))
        if self.chance(0.2):
            lo, hi = least, most
        text = self.within(kind, lo, hi)
        self.emit(f"{name} = {text if '(' in text else f'{kind}({text})'}")  # a number alone leaves the type open
        self.values[name] = self.budgets[name] = kind, lo, hi

    def make_flag(self):
        name = self.fresh("g")
        self.emit(f"{name} = {self.flag()}")
        self.flags.append(name)

    def make_index(self):
        name = self.fresh("j")
        self.emit(f"{name} = n {self.one('+ 1', '- n', '<< 1', '>> 1', '* 3')}")
        self.indices[name] = 0, 200

    def make_store(self):
        stored = [name for name in self.arrays if self.arrays[name][4] in ("out", "both")]
        if stored:
            name = self.one(*stored)
            storage, lo, hi, size, _ = self.arrays[name]
            self.emit(f"{name}[{self.place(size)}] = {self.fitting(storage, lo, hi)}")
        else:
            self.make_let()

    def make_fill(self):
        """Write an `out` array from one end to the other."""
        name = next((name for name in self.arrays if self.arrays[name][4] == "out" and name not in self.filled), None)
        if name is None:
            self.make_store()
            return
        storage, lo, hi, size, _ = self.arrays[name]
        counter = self.fresh("i")
        self.emit(f"for {counter} in range({size}):")
        with inside(self):
            self.counters[counter] = size
            self.emit(f"{name}[{counter}] = {self.fitting(storage, lo, hi)}")
            if self.chance(0.3):
                self.statement()
            del self.counters[counter]
        if not self.looping:
            self.filled.add(name)

    def make_for(self):
        sizes = [size for _, _, _, size, _ in self.arrays.values()]
        ends = [*sizes, *sizes, "n", self.one("3", "5", "66"), *(f"{i}" for i in self.counters)]
        small = [name for name, (kind, lo, hi) in self.values.items() if lo >= 0 and hi <= 300]
        last = self.one(*ends, *small[:1])
        first = self.one(
            "", "", "", "", "1, ", *(f"{i} + 1, " for i in self.counters), *(f"{name}, " for name in small[:1])
        )
        counter = self.fresh("i") if self.chance(0.8) else "_"
        self.emit(f"for {counter} in range({first}{last}):")
        with inside(self):
            if counter != "_":
                self.counters[counter] = last
            for _ in range(self.one(1, 2, 3)):
                self.statement()
            self.counters.pop(counter, None)

    def make_if(self):
        self.emit(f"if {self.one(*self.flags) if self.flags and self.chance(0.4) else self.flag()}:")
        for way in range(2):
            with inside(self, loop=False):
                for _ in range(self.one(1, 2)):
                    self.statement()
                if self.chance(0.08):
                    self.early()
            if way or self.chance(0.5):
                break
            self.emit("else:")

    def early(self):
        if self.lines[-1].lstrip().startswith(("return", "break")):
            return
        if self.looping or self.lines[-1].startswith(self.pad):
            value = f" {self.fitting(*self.formats[self.result])}" if self.result else ""
            self.emit(f"if {self.flag()}:")
            self.emit("    break" if self.looping and self.chance(0.5) else f"    return{value}")

    def make_call(self):
        if not self.helpers:
            self.make_let()
            return
        name, given, arrays, _, result = self.one(*self.helpers)
        passed = []
        for made, form in given:
            if made in arrays:
                fit = [one for one, own in self.arrays.items() if own is arrays[made] and one not in passed]
                passed.append(self.one(*fit))
            elif made in self.lengths:
                passed.append(made)
            elif form.startswith("Below"):
                passed.append(self.below or "0")
            else:
                passed.append(self.fitting(*self.formats[form]))
        call = f"{name}({', '.join(passed)})"
        if result is None:
            self.emit(call)
            return
        made, (storage, lo, hi) = self.fresh("v"), self.formats[result]
        beside = not arrays and self.chance(0.3)  # a call that may write stands alone
        self.emit(f"{made} = {self.mixed(call, storage[0] + '32', lo, hi) if beside else call}")
        self.values[made] = storage[0] + "32", lo, hi

    def mixed(self, call, kind, lo, hi):
        """Return a call beside a load."""
        larger = "maxu" if kind == "u32" else "max_"
        loads = self.loads(kind)
        return f"{larger}({call}, {self.one(*loads)[0] if loads else 0})"


@contextlib.contextmanager
def inside(writer, loop=True):
    """Write a block: what is declared in it is forgotten after it."""
    w = writer
    before = dict(w.values), dict(w.budgets), list(w.flags), dict(w.indices), set(w.filled)
    w.pad += "    "
    w.looping += loop
    yield
    w.pad = w.pad[4:]
    w.looping -= loop
    w.values, w.budgets, w.flags, w.indices, w.filled = before


def written(seed, secret=0.0):
    return Writer(seed, secret).module()


def declared(seed, secret=0.0):
    """The kernel of a seed, with names of its own."""
    text = re.sub(r"\b(k|h\d)\(", rf"\1_{seed}(", written(seed, secret))
    return load(text, f"made_{seed}.py")[f"k_{seed}"]


def copied(arguments):
    return {name: list(value) if isinstance(value, list) else value for name, value in arguments.items()}


def lengths_to_try(kernel, many):
    """Short, long and mixed lengths that go together."""
    found = []
    for shift in range(many):
        lengths = {}
        for place, (name, kind) in enumerate(kernel.lengths.items()):
            hi = min(kind.hi, lengths.get(kind.at_most, kind.hi)) if kind.at_most else kind.hi
            choices = [kind.lo, hi, min(kind.lo + 1, hi), (kind.lo + hi) // 2]
            lengths[name] = choices[(shift + place * (shift // 4)) % 4]
        if all(kind.at_most is None or kind.lo <= lengths[name] <= lengths[kind.at_most]
               for name, kind in kernel.lengths.items()) and lengths not in found:  # fmt: skip
            found.append(lengths)
    return found


def arguments_of(kernel, lengths, chosen):
    """Random arguments with many edges; lists for arrays."""

    def number(name, lo, hi):
        anywhere = chosen.randint(lo, max(lo, hi))
        return chosen.choice([lo, hi, max(lo, min(hi, chosen.randint(-9, 9))), anywhere, anywhere])

    return arguments(kernel, lengths, number)
