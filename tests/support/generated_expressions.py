"""The expressions of generated kernels: text, with the lowest and the highest value that it can have, roughly."""

STORAGE = {"u8": (0, 255), "u16": (0, 65535), "u32": (0, 2**32 - 1), "i8": (-128, 127), "i16": (-32768, 32767)}
STORAGE["i32"] = (-(2**31), 2**31 - 1)
WORD = {"u32": STORAGE["u32"], "i32": STORAGE["i32"]}
NEW = ("saturating_add", "saturating_sub", "select", "narrow", "blend")
SIGNED = ("add", "sub", "mul", "div", "shl", "asr", "min_", "max_", "i32", *NEW)
UNSIGNED = (
    *("addu", "subu", "mulu", "divu", "shlu", "shru", "and_", "or_", "xor", "not_", "selectu", "minu", "maxu"),
    *("wrapping_addu", "rotlu", "sign_mask", "u32", "saturating_addu", "saturating_subu"),
)


class Expressions:
    """Write expressions; keep the names that are in sight."""

    # expressions: text, lowest, highest

    def fitting(self, storage, lo, hi):
        return self.within(storage[0] + "32", lo, hi)

    def within(self, kind, lo, hi):
        """Return an expression whose value is clamped to lo … hi, most of the time."""
        text, least, most = self.expression(kind, self.one(0, 1, 2, 3))
        if self.chance(0.02):
            return text
        low, high = ("max_", "min_") if kind == "i32" else ("maxu", "minu")
        text = f"{low}({text}, {lo})" if least < lo else text
        return f"{high}({text}, {hi})" if most > hi else text

    def flag(self):
        kind = self.one("u32", "i32")
        a, b = self.expression(kind, 1)[0], self.expression(kind, 1)[0]
        names = [name for name, (own, lo, hi) in self.values.items() if own == kind]
        if names and self.chance(0.5):
            a, b = self.one(*names), self.one(b, str(self.random.randint(0, 50)))
        return f"{self.one('ge', 'ge', 'lt', 'eq', 'ne')}{'u' if kind == 'u32' else ''}({a}, {b})"

    def loads(self, kind):
        found = []
        for name, (storage, lo, hi, size, how) in self.arrays.items():
            if storage[0] == kind[0] and (how != "out" or name in self.filled or self.chance(0.05)):
                found.append((f"{name}[{self.place(size)}]", lo, hi))
        return found

    def leaf(self, kind):
        found = [(name, lo, hi) for name, (own, lo, hi) in self.values.items() if own == kind]
        found += self.loads(kind)
        found += [(name, 0, 200) for name in [*self.counters, *self.lengths, *self.indices]]
        number = self.random.choice([0, 1, 2, 7, 255, 65535, self.random.randint(0, 2**31 - 1)])
        found.append((str(number), number, number))
        return self.one(*found)

    def expression(self, kind, depth):
        if depth == 0:
            return self.leaf(kind)
        name = self.one(*(SIGNED if kind == "i32" else UNSIGNED))
        a, b = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        if name in ("u32", "i32", "sign_mask"):
            return self.apply_view(name, kind, a, b)
        own = name if hasattr(self, f"apply_{name}") else name.removesuffix("_").removesuffix("u")
        return getattr(self, f"apply_{own}", self.plain)(name, kind, a, b)

    def fit(self, part, lo, hi):
        """The expression, clamped where it leaves lo … hi."""
        text, least, most = part
        low, high = ("max_", "min_") if lo < 0 else ("maxu", "minu")
        if self.chance(0.01):
            return part
        if most > hi:
            masked = lo == 0 and self.chance(0.5) and hi & (hi + 1) == 0
            text = f"{'and_' if masked else high}({text}, {hi})"
        if least < lo:
            text = f"{low}({text}, {lo})"
        return text, max(least, lo), min(most, hi)

    def plain(self, name, kind, a, b):
        return f"{name}({a[0]}, {b[0]})", *WORD[kind]

    def sized(self, kind, bits):
        return (-(2**bits), 2**bits - 1) if kind == "i32" else (0, 2**bits - 1)

    def apply_add(self, name, kind, a, b):
        a, b = (self.fit(part, *self.sized(kind, 30)) for part in (a, b))
        return f"{name}({a[0]}, {b[0]})", a[1] + b[1], a[2] + b[2]

    def apply_select(self, name, kind, a, b):
        return f"select({self.flag()}, {a[0]}, {b[0]})", min(a[1], b[1]), max(a[2], b[2])

    def apply_narrow(self, name, kind, a, b):
        total = f"mac(mul64({a[0]}, {b[0]}), {self.leaf('i32')[0]}, {b[0]})"
        if self.chance(0.3):
            total = f"sub64(asr64({total}, {self.random.randint(0, 31)}), add64({a[0]}, {self.leaf('u32')[0]}))"
        return f"narrow({total}, {self.count(0)})", *WORD[kind]

    def apply_blend(self, name, kind, a, b):
        """Between two names, by a weight: what the proof knows better than intervals do."""
        names = [own for own, (kind, lo, hi) in self.values.items() if kind == "i32" and -(2**20) <= lo <= hi <= 2**20]
        if len(names) < 2:
            return self.apply_add("add", kind, a, b)
        (one, lo, hi), (other, low, high) = (
            (own, *self.values[own][1:]) for own in (self.one(*names), self.one(*names))
        )
        part = self.fit(self.leaf("u32"), 0, self.one(255, 256, 256, 300))[0]
        text = self.one(
            f"add({one}, asr(mul(sub({other}, {one}), {part}), 8))",
            f"asr(add(mul({one}, sub(256, {part})), mul({other}, {part})), 8)",
            f"add({one}, asr(add(mul(sub({other}, {one}), {part}), 128), 8))",
            f"add({one}, asr(sub({other}, {one}), 1))",
        )
        return text, 2 * min(lo, low) - max(hi, high), 2 * max(hi, high) - min(lo, low)

    def apply_sub(self, name, kind, a, b):
        a, b = (self.fit(part, *self.sized(kind, 30)) for part in (a, b))
        return f"{name}({a[0]}, {b[0]})", a[1] - b[2], a[2] - b[1]

    def apply_subu(self, name, kind, a, b):
        return f"subu(maxu({a[0]}, 5000), {self.fit(b, 0, 4095)[0]})", 0, WORD[kind][1]

    def apply_mul(self, name, kind, a, b):
        a, b = self.fit(a, *self.sized(kind, 14)), self.fit(b, *self.sized(kind, 16))
        if self.chance(0.2):
            b = a
        ends = [x * y for x in a[1:] for y in b[1:]]
        return f"{name}({a[0]}, {b[0]})", min(ends), max(ends)

    def apply_div(self, name, kind, a, b):
        largest = "max_" if kind == "i32" else "maxu"
        return f"{name}({self.fit(a, *self.sized(kind, 31))[0]}, {largest}({b[0]}, 1))", *WORD[kind]

    def count(self, least):
        if "b" in self.lengths and least == 0 and self.chance(0.4):
            return "b"
        return self.one(str(self.random.randint(least, 31)), f"minu(maxu({self.leaf('u32')[0]}, {least}), 31)")

    def apply_shl(self, name, kind, a, b):
        return f"{name}({self.fit(a, *self.sized(kind, 9))[0]}, {self.random.randint(0, 20)})", *WORD[kind]

    def apply_asr(self, name, kind, a, b):
        return f"{name}({a[0]}, {self.count(0)})", min(a[1], 0), a[2]

    apply_shr = apply_asr

    def apply_rotlu(self, name, kind, a, b):
        return f"rotlu({a[0]}, {self.count(1)})", *WORD[kind]

    def apply_min(self, name, kind, a, b):
        return f"{name}({a[0]}, {b[0]})", min(a[1], b[1]), min(a[2], b[2])

    def apply_max(self, name, kind, a, b):
        return f"{name}({a[0]}, {b[0]})", max(a[1], b[1]), max(a[2], b[2])

    def apply_and(self, name, kind, a, b):
        if self.chance(0.3):  # one of two, picked by a sign
            test, x = self.fit(self.leaf("i32"), -(2**20), 2**20), a[0]
            mask = f"sign_mask(sub({test[0]}, {self.random.randint(0, 9)}))"
            return f"or_(and_({x}, {mask}), and_(u32({test[0]}), not_({mask})))", *WORD[kind]
        return f"and_({a[0]}, {b[0]})", 0, min(a[2], b[2])

    def apply_not(self, name, kind, a, b):
        return f"not_({a[0]})", *WORD[kind]

    def apply_view(self, name, kind, a, b):
        return f"{name}({self.leaf('u32' if name == 'i32' else 'i32')[0]})", *WORD[kind]

    def apply_selectu(self, name, kind, a, b):
        flag = self.one(*self.flags) if self.flags and self.chance(0.5) else self.flag()
        return f"selectu({flag}, {a[0]}, {b[0]})", min(a[1], b[1]), max(a[2], b[2])

    # places

    def place(self, size):
        """Return an index that is inside, nearly always."""
        if self.chance(0.02):
            return self.one("n", *self.counters, *self.lengths)
        inside = ["0", f"({size}) - 1"] if not size.isdigit() else ["0", str(int(size) - 1)]
        for counter, last in self.counters.items():
            if last == size:
                inside += [counter] * 3 + [f"({size}) - 1 - {counter}"]
            if size == "2 * n" and last == "n":
                inside += [f"2 * {counter}", f"2 * {counter} + 1", f"n + {counter}"]
            if last == "n" and size in ("n + 1", "n + m", "n * n"):
                inside.append(counter)
            if size == "n * n" and last == "n":
                inside += [f"{counter} * n + {self.one(*(c for c in self.counters if self.counters[c] == 'n'))}"]
        if self.below and size in ("n", "n + 1", "2 * n"):
            inside += [self.below] * 2
        if size == "7":
            words = [name for name, (kind, lo, hi) in self.values.items() if kind == "u32"]
            inside += [f"minu({self.one(*words)}, 6)"] * 2 if words else []
        return self.one(*inside)
