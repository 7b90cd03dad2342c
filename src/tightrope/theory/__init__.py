"""What the theorems promise, in numbers: rates, concentrability, bounds, and advice on kappa."""

from tightrope.theory.soft import SoftUpdate, soft_rate, soft_update_is_safe

__all__ = ["SoftUpdate", "soft_rate", "soft_update_is_safe"]
