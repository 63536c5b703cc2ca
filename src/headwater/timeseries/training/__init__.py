"""Training sets: labels with the features that were known for them."""

from headwater.timeseries.training.training_set import LeakReport, TrainingSet

__all__ = ["LeakReport", "TrainingSet"]
