"""What every page shares: colours, style, numbers in words, figures, and one self-contained file.

Needs the extra ``study``.
"""
