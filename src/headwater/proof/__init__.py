"""proof: is it right, what changed it, and is it gone? What can be shown of everything derived."""
