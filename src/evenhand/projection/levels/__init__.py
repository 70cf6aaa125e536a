"""Tables with levels and steps, and costs that are sums over columns: branch and bound."""
