"""One proposal of a move, taken apart: what was drawn, how probable it was, and what decided."""
