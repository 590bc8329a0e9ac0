"""A Dask cluster on this machine, for tests."""

import distributed


def local_cluster(workers=2, processes=False):
    """Silent, without a dashboard that others could find."""
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=processes,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    )
