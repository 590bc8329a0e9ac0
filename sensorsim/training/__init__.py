"""Private training of the distributed autoencoder: configurations, models, runs, sweeps, figures.

config.py                    one configuration: its fields, checks and key
model.py, step.py, loop.py   nets and optimisers; randomness, clipping and one step; batches and the loop
trained.py, fitting.py       models as they are used and learnt from a release; one model with its privacy statement
model_files.py               models on disk, and their encoders in the kernels' integers
scores.py, cells.py          accuracy of a saved model without torch; a configuration trained and scored in all its runs
sweeps.py, results_file.py   grids of configurations, and the file of their finished runs
curves.py, run_figures.py    panels with curves and labels, and the figures
"""
