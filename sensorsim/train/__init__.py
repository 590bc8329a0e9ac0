"""Private training of the distributed autoencoder: data, mechanisms, runs, sweeps, figures."""
