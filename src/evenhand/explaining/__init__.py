"""From a fitted method to explanations of whole tables."""
