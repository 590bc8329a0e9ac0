"""Count the operations of mechanisms and price them from processor, chip and radio tables."""
