"""Bisections: started, advanced one step at a time, steered by people, explained."""
