"""For how many people an explanation is proven to be stable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.displays.base import INK, ZONE, Display, check_named, percent, styles
from evenhand.stability.certificate import Certificates
from evenhand.types import FloatArray


@dataclass
class CertificateDisplay(Display):
    """For how many people an explanation is proven to be stable, by the size of the perturbation.

    Parameters
    ----------
    eps : array of shape (k,)
        Sizes of the perturbation.
    shares : mapping of name to array of shape (k,)
        Share of people who are certified.
    """

    eps: FloatArray = field(default_factory=lambda: np.zeros(0))
    shares: Mapping[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def from_certificates(
        cls,
        certificates: Certificates | Mapping[str, Certificates],
        *,
        eps: npt.ArrayLike | None = None,
        ax: Any = None,
    ) -> CertificateDisplay:
        """Draw one result of :func:`certify`, or several by name; sizes `eps` are chosen from the radii if left out."""
        named = {"": certificates} if isinstance(certificates, Certificates) else certificates
        check_named(named, "certify()")
        if len({c.order for c in named.values()}) > 1:
            raise ValueError(
                "Certificates with l1 and with l2 costs prove different things, in different units: draw them apart."
            )
        if eps is None:
            radii = np.concatenate([np.minimum(c.stability_radius, c.label_radius) for c in named.values()])
            radii = radii[np.isfinite(radii)]
            most = float(np.quantile(radii, 0.95)) if len(radii) else 1.0
            eps = np.linspace(0.0, most or 1.0, 200)
        sizes = np.asarray(eps, dtype=np.float64)
        if sizes.ndim != 1 or len(np.unique(sizes)) < 2 or not (np.isfinite(sizes) & (sizes >= 0)).all():
            raise ValueError(f"eps must list at least two different sizes >= 0, got {eps!r}.")
        shares = {name: np.array([c.share(size) for size in sizes]) for name, c in named.items()}
        return cls(eps=sizes, shares=shares).plot(ax=ax)

    def plot(self, ax: Any = None) -> CertificateDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = self._canvas(ax)
        for (name, share), (color, _, line) in zip(self.shares.items(), styles(len(self.shares)), strict=True):
            ax.step(self.eps, share, where="post", color=color, ls=line, lw=1.8, label=name or None)
            if not name:
                ax.fill_between(self.eps, share, step="post", color=ZONE, lw=0)
        ax.set_ylim(0, 1)
        ax.set_xlim(float(self.eps.min()), float(self.eps.max()))
        ax.yaxis.set_major_formatter(percent())
        self._titled(
            ax, "Explanations proven stable", "size of the perturbation, in units of the cost →", "share of people"
        )
        if any(self.shares):
            ax.legend(frameon=False, fontsize=9, loc="upper right", labelcolor=INK)
        return self
