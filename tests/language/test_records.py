"""Records and ports of the kernel language, in every reader: refused, proved, followed, counted, run, and as C."""

import ctypes
import linecache
from types import SimpleNamespace

import numpy as np
import pytest
import record_kernels as own
from exported import need, run

from sensorsim.device.running import Cells, hosted, new_record, plain
from sensorsim.language import LanguageError
from sensorsim.language.arguments import arguments
from sensorsim.language.c.translation_units import c_sources
from sensorsim.language.count import count
from sensorsim.language.numba_backend import compiled
from sensorsim.language.ranges import RangeError

HEAD = "from record_kernels import *\nfrom sensorsim.language import *\n"


def declared(body, name="cell", head=""):
    """Return the kernel of a text, as a notebook cell declares it."""
    text = f"{HEAD}{head}@kernel()\ndef f(meter: METER, x: SECRET) -> FAILED:\n    '''F.'''\n{body}"
    linecache.cache[f"<{name}>"] = (len(text), None, text.splitlines(True), f"<{name}>")
    scope = {}
    exec(compile(text, f"<{name}>", "exec"), scope)
    return scope["f"]


REFUSED = {
    "no such field": ("    return u32(meter.size)\n", "meter.size, which the record has not"),
    "an array as a value": ("    return u32(meter.bytes)\n", "uses the array meter.bytes as a value"),
    "a cell with an index": ("    meter.count[0] = 1\n    return u32(0)\n", "stores to meter.count as what it is not"),
    "an array without an index": (
        "    meter.bytes = 1\n    return u32(0)\n",
        "stores to meter.bytes as what it is not",
    ),
    "another port": (
        "    a = meter.port.erase(1)\n    return u32(a)\n",
        "asks meter.port for erase; ask for load, store",
    ),
    "too few arguments": ("    a = meter.port.load(1)\n    return u32(a)\n", "asks for load with 1 arguments"),
    "a whole array": ("    a = meter.port.load(1, meter.bytes)\n    return u32(a)\n", "pass a part, as bytes[0:32]"),
    "in an expression": ("    return or_(meter.port.time(), 1)\n", "asks the board for time inside an expression"),
    "a new value": ("    meter = u32(1)\n    return meter\n", "gives a new value to the parameter meter"),
    "another record": ("    a = read_count(x)\n    return u32(a)\n", "passes `x` as the record meter of read_count"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_in_the_language_is_refused(what):
    body, said = REFUSED[what]
    with pytest.raises(LanguageError, match=r"^<cell>:\d+: ") as refused:
        declared(body)
    assert said in str(refused.value)


UNPROVED = {
    "behind the array": (
        "    a = meter.port.load(1, meter.bytes[3:5])\n    return u32(a)\n",
        "reaches behind meter.bytes",
    ),
    "a slot that is none": (
        "    a = meter.port.load(2, meter.bytes[0:2])\n    return u32(a)\n",
        "slot of load can be 2",
    ),
    "a count too large": ("    meter.count = addu(meter.count, 1)\n    return u32(0)\n", "0 … 65535 is declared"),
}


@pytest.mark.parametrize("what", UNPROVED)
def test_what_the_contract_does_not_allow_is_not_proved(what):
    body, said = UNPROVED[what]
    with pytest.raises(RangeError) as unproved:
        declared(body).prove()
    assert said in str(unproved.value)


def test_the_kernels_are_proved_for_every_answer_of_the_board():
    for one in (own.read_count, own.count_once, own.seed):
        assert one.prove() and one.secrecy().proved
    assert own.count_once.asks and not own.count_once.called[0].parameters["meter.port"].cell


def test_secrets_that_the_board_is_given_or_gives_are_followed():
    given = "    meter.bytes[0] = x\n    a = meter.port.store(1, meter.bytes[0:2])\n    return u32(a)\n"
    (found,) = declared(given).secrecy().findings
    assert found.kind == "port" and "gives a secret to the board" in found.text
    looks = "\n    if geu({}[0], 1):\n        return u32(1)\n    return u32(a)\n"
    taken = "    a = meter.port.draw(meter.seed[0:4])" + looks.format("meter.seed")
    (found,) = declared(taken).secrecy().findings
    assert found.kind == "branch"
    public = "    a = meter.port.load(1, meter.bytes[0:2])" + looks.format("meter.bytes")
    assert declared(public).secrecy().proved


class Memory:
    """A board of two slots of two bytes."""

    def __init__(self, held=b"\x00\x00\xff\x01", fails=()):
        self.held, self.fails, self.stores = bytearray(held), set(fails), 0

    def load(self, slot, bytes):
        for i in range(2):
            bytes[i] = self.held[2 * slot + i]
        return int("load" in self.fails)

    def store(self, slot, bytes):
        self.stores += 1
        for i in range(2):
            self.held[2 * slot + i] = bytes[i]
        return int("store" in self.fails)

    def time(self):
        return 7


def test_counting_runs_it_on_a_board():
    kernel, memory = own.count_once, Memory()
    given = arguments(kernel, {}, lambda name, lo, hi: hi) | {"meter.port": memory, "most": 1000}
    found = count(kernel, given)
    assert given["meter.count"] == [512] and memory.held[2:] == b"\x00\x02" and memory.stores == 1
    assert sum(times for (_, what), times in found.items() if what == "STORE") == 4  # two counts, two bytes
    assert {key[1] for key in kernel.formula(otherwise=True)} == {key[1] for key in found}


@pytest.mark.parametrize(("fails", "answer", "held"), [((), 0, 512), (("load",), 1, 511), (("store",), 1, 512)])
def test_python_numba_and_c_agree(fails, answer, held, tmp_path):
    memory = Memory(fails=fails)
    record = new_record(own.METER, port=memory)
    assert hosted(own.count_once, plain)(record, 1000) == answer
    assert int.from_bytes(memory.held[2:], "little") == held
    assert isinstance(record.bytes, Cells)
    assert by_numba(fails) == (answer, held)
    assert by_c(fails, tmp_path) == (answer, held)


def by_numba(fails):
    import numba

    jit = numba.njit

    @jit
    def load(board, slot, bytes):
        for i in range(2):
            bytes[i] = board[2 * slot + i]
        return board[4]

    @jit
    def store(board, slot, bytes):
        for i in range(2):
            board[2 * slot + i] = bytes[i]
        return board[5]

    @jit
    def time(board):
        return 7

    ports = Ports(load, store, time)
    function = compiled(own.count_once, ports)
    board = np.array([0, 0, 255, 1, "load" in fails, "store" in fails], np.uint8)
    fields = np.zeros(1, np.uint32), np.zeros(4, np.uint8), np.zeros(4, np.uint8)
    result = jit(lambda board, count, bytes, seed: function(board, count, bytes, seed, 1000))(board, *fields)
    return int(result), int(board[2]) + 256 * int(board[3])


class Ports(tuple):
    """The functions of a board; a tuple, so that it can be remembered."""

    def __new__(cls, load, store, time):
        made = super().__new__(cls, (load, store, time))
        made.load, made.store, made.time = load, store, time
        return made


BOARD = """
#include "ss_meter.h"
#include "ss_kernels.h"
static uint8_t held[4] = { 0, 0, 255, 1 };
static int bad_load, bad_store;
static int load(void *b, uint32_t slot, uint8_t *bytes, uint32_t count)
{ for (uint32_t i = 0; i < count; i++) { bytes[i] = held[2 * slot + i]; } (void)b; return bad_load; }
static int store(void *b, uint32_t slot, const uint8_t *bytes, uint32_t count)
{ for (uint32_t i = 0; i < count; i++) { held[2 * slot + i] = bytes[i]; } (void)b; return bad_store; }
static int draw(void *b, uint8_t *bytes, uint32_t count) { (void)b; (void)bytes; (void)count; return 1; }
static uint32_t now(void *b) { (void)b; return 7; }
uint32_t test(int fails_load, int fails_store)
{
    ss_meter meter = { .port = { 0, load, store, draw, now } };
    bad_load = fails_load;
    bad_store = fails_store;
    const uint32_t answer = ss_count_once(&meter, 1000);
    return answer * 65536U + held[2] + 256U * held[3];
}
"""


def by_c(fails, folder):
    for path, text in c_sources([own.count_once], "ss_", (), "").items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "board.c").write_text(BOARD)
    where = [f"-I{folder / part}" for part in ("include", "src")]
    options = ("-shared", "-fPIC", "-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror")
    run(need("cc"), *options, *where, folder / "board.c", *(folder / "src").glob("*.c"), "-o", folder / "test.so")
    library = ctypes.CDLL(str(folder / "test.so"))
    library.test.restype = ctypes.c_uint32
    made = library.test(int("load" in fails), int("store" in fails))
    return made >> 16, made & 0xFFFF


def test_a_record_in_c_is_a_struct_with_documented_members():
    texts = c_sources([own.count_once], "my_", (), "")
    header = texts["include/my_meter.h"]
    assert "uint32_t count; /**< what was counted */" in header and "} my_meter;" in header
    assert "int (*store)(void *board, uint32_t slot, const uint8_t *bytes, uint32_t count);" in header
    assert "uint32_t my_count_once(my_meter *meter, uint32_t most)" in texts["include/my_kernels.h"]


def test_plain_python_runs_the_text_itself():
    memory = Memory()
    meter = SimpleNamespace(port=memory, count=0, bytes=np.zeros(4, np.uint8).view(), seed=[0] * 4)
    meter.bytes = Cells(meter.bytes)
    assert own.count_once(meter, 1000) == 0 and meter.count == 512
