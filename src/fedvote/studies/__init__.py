"""Studies: measurements of this machine (`fedvote bench`), and experiments over runs (`fedvote reproduce`)."""
