"""From draws to answers: similarity, trees, point estimates, uncertainty, and agreement with known labels."""
