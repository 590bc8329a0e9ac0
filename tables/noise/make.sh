#!/bin/sh
# Makes the ready tables, the same bytes every time. Run in this folder.
# Rows: the smallest that lose next to nothing; the design chooses the size.
# Stairs: the smallest power of two whose unbiased estimate is within 2 % of what 2^14 entries reach.
# The figures:
#   sensorsim noise make --kind naive --epsilon 1 --frac-bits 8 --entries 2^16 --out naive.txt
#   sensorsim noise show naive.txt --plot naive.png        why naive tables fail
#   sensorsim noise peers --plot records.png               records that each mechanism needs
#   sensorsim noise show rows-eps1.6-1.txt --plot rows.png  a rows table
set -e
sensorsim noise make --epsilon 0.1
sensorsim noise make --epsilon 0.2
sensorsim noise make --epsilon 0.4
sensorsim noise make --epsilon 0.8
sensorsim noise make --epsilon 1
sensorsim noise make --epsilon 1.6
sensorsim noise make --epsilon 3.2
sensorsim noise make --epsilon 6.4
sensorsim noise make --epsilon 0.1 --release 1
sensorsim noise make --epsilon 0.2 --release 1
sensorsim noise make --epsilon 0.4 --release 1
sensorsim noise make --epsilon 0.8 --release 1
sensorsim noise make --epsilon 1 --release 1
sensorsim noise make --epsilon 1.6 --release 1
sensorsim noise make --epsilon 3.2 --release 1
sensorsim noise make --epsilon 6.4 --release 1
sensorsim noise make --kind stairs --epsilon 0.1 --entries 2^14
sensorsim noise make --kind stairs --epsilon 0.2 --entries 2^14
sensorsim noise make --kind stairs --epsilon 0.4 --entries 2^13
sensorsim noise make --kind stairs --epsilon 0.8 --entries 2^11
sensorsim noise make --kind stairs --epsilon 1 --entries 2^9
sensorsim noise make --kind stairs --epsilon 1.6 --entries 2^8
sensorsim noise make --kind stairs --epsilon 3.2 --entries 2^8
sensorsim noise make --kind stairs --epsilon 6.4 --entries 2^9
sensorsim noise make --kind stairs --epsilon 0.1 --release 1 --entries 2^10
sensorsim noise make --kind stairs --epsilon 0.2 --release 1 --entries 2^9
sensorsim noise make --kind stairs --epsilon 0.4 --release 1 --entries 2^10
sensorsim noise make --kind stairs --epsilon 0.8 --release 1 --entries 2^6
sensorsim noise make --kind stairs --epsilon 1 --release 1 --entries 2^7
sensorsim noise make --kind stairs --epsilon 1.6 --release 1 --entries 2^9
sensorsim noise make --kind stairs --epsilon 3.2 --release 1 --entries 2^8
sensorsim noise make --kind stairs --epsilon 6.4 --release 1 --entries 2^13
