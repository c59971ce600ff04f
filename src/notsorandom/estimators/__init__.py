"""The scikit-learn estimators: validate, play, store."""
