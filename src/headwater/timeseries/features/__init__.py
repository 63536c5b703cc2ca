"""Feature tables: streams over tables of a lake whose rows are kept, and follow the tables."""

from headwater.timeseries.features.feature_table import FeatureTable

__all__ = ["FeatureTable"]
