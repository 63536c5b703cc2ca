"""observe: what is it doing, and where does the time go? Graphs of operators with their figures, drawn for people."""
