"""The hospital's side: packets come in, means with their intervals come out. No raw record is ever seen here.

from sensorsim.hospital import receive
received = receive("packets.bin", table)
received.to_frame()

Everything is post-processing of what sensors have released: it can be looked at as often as one likes.
"""

from sensorsim.hospital.received import DirectionMean, FeatureMean, Received, SketchMean
from sensorsim.hospital.receiving import receive
from sensorsim.hospital.statistics import Statistics, read_received

__all__ = ["DirectionMean", "FeatureMean", "Received", "SketchMean", "Statistics", "read_received", "receive"]
