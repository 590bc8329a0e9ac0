"""Private training of the distributed autoencoder: data, runs, sweeps, figures.

data.py, synthetic.py      records, and a synthetic set like them
model.py, optimiser.py     the nets, all runs at once, gradients in closed form
noise.py, step.py, run.py   the randomness, one step as a mechanism sees it, the training loop
estimator.py               what release and sampled make of a release
statement.py               what was spent, and what that covers
metrics.py                 accuracy, and the trivial predictors
cell.py, sweep.py, store.py   one configuration, a grid of them, what is finished
save.py, quantise.py       models on disk, encoders in the kernels' integers
figures.py, noisy_inputs.py   the paper's figures
"""
