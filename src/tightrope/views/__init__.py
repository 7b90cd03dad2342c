"""Pictures and pages: views read results and never compute them; Matplotlib loads when the first picture is drawn."""

from tightrope.views import plot

__all__ = ["plot"]
