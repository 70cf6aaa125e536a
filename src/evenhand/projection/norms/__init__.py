"""Tables of numbers, and costs that are norms: the kernels, and the careful way where they are not enough."""
