"""Private training of the distributed autoencoder: data, mechanisms, runs, sweeps, figures.

data.py, synthetic.py      records, and a synthetic set like them
model.py, optimiser.py     the nets, all runs at once, gradients in closed form
mechanisms.py, noise.py    one step of each mechanism, and its noise
run.py                     the training loop
estimator.py               what exact and sampled make of a release
statement.py               what was spent, and what that covers
metrics.py                 accuracy, and the trivial predictors
cell.py, sweep.py, store.py   one configuration, a grid of them, what is finished
save.py, quantise.py       models on disk, encoders in the kernels' integers
figures.py, noisy_inputs.py   the paper's figures
"""
