"""Count the operations of mechanisms and price them from processor, chip and radio tables."""

from sensorsim.doors import open_door

open_door(__name__)
