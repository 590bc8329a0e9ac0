"""Private training of the distributed autoencoder: data, models, runs, sweeps, figures.

table.py, table_parquet.py       a CSV or Parquet file, checked cell by cell
data.py, split.py                records in 0 … 1, who gets whom
synthetic.py, crowds.py          a synthetic set of daily activity, and sets of any size
released.py, estimator.py        records through the device's kernels, and the model that is made of their sums
pseudo.py                        the paper's net on pseudo-records
trained.py, prior_codes.py       a model as it is used, and what its codes are expected to be
fit.py, received.py              one model from data, or from packets
about.py, save.py, quantise.py   what a model's file says, models on disk, encoders in the kernels' integers
evaluate.py, trivial.py          how well a model does on raw records, beside predictors that need no training
model.py, optimiser.py           the nets of the loop, all runs at once, gradients in closed form
noise.py, order.py, records.py   the randomness, which record when, batches
step.py, clipped.py, run.py      one step as a mechanism sees it, clipping, the training loop
statement.py                     what was spent, and what that covers
scoring.py, metrics.py, interval.py   accuracy run by run, and intervals
cell.py, sweep.py, store.py, kept.py  one configuration, a grid of them, what is finished, that read again
figures.py, curves.py, labels.py, axes.py, sheet.py, noisy_figures.py, noisy_inputs.py   the figures
"""
