"""Proofs about machine code for every input: it is lifted to P-code, executed on bit vectors and compared with the
kernel by an SMT solver.

bitvectors.py      values of a fixed width: numbers that are known, terms that are not, and which secrets they depend on
memory_model.py    registers and memory that keep values as they were written
pcode_machine.py   execute machine code on these values, path by path
paths.py           follow the code along all of its paths, and join those that meet again
recognition.py     find values of the kernel among those of the code, so that both are written alike
kernel_meaning.py  execute a kernel's nodes on the same values
equivalence.py     prove that a compiled function computes its kernel, and nothing else
"""
