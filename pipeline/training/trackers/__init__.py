"""Trackers of experiments: the figures of a training, sent to the services where people look at runs."""
