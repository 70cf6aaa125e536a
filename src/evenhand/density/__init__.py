r"""Where a class is dense: one Gaussian mixture per class, as a region of ellipsoids.

Let :math:`w_k \mathcal{N}_k(z)` be the weighted components of a class's mixture.  The class is *dense* where
the largest of them reaches a threshold :math:`t`, which is one ellipsoid per component,

.. math:: \|P_k^\top z - P_k^\top \mu_k\|^2 \le 2 (\log w_k - \log t) - d \log 2\pi - \log |\Sigma_k|,

with :math:`\Sigma_k^{-1} = P_k P_k^\top`.  A sum is at least its largest term, so that the mixture's own density
reaches :math:`t` everywhere in the region.
"""

from __future__ import annotations

from evenhand.density.class_densities import ClassDensities, log_peaks, weighted_log_densities
from evenhand.density.high_density import HighDensity

__all__ = ["ClassDensities", "HighDensity", "log_peaks", "weighted_log_densities"]
