"""`doctor`: what stands in the way, and what to do about it. Asks; changes nothing."""
