"""Receive packets at the hospital: means with their intervals, covariances, models. No raw record is ever read here.

from sensorsim.hospital import receive
received = receive("packets.bin", table)
received.to_frame()

Everything is post-processing of what sensors have released, and costs no privacy.
"""

from sensorsim.hospital.receiver import DirectionMean, FeatureMean, Received, SketchMean, receive
from sensorsim.hospital.sum_files import Statistics, read_received

__all__ = ["DirectionMean", "FeatureMean", "Received", "SketchMean", "Statistics", "read_received", "receive"]
