"""Runs that compare the method with others."""
