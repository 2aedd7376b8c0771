"""The table of an experiment for a terminal, a mail, a changelog and a spreadsheet."""
