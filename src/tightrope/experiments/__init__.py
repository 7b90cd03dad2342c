"""Computations that compare or demonstrate something; they return plain records, which views draw and never recompute."""
