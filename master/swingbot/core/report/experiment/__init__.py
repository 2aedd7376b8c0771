"""The table of an experiment in every form: for a terminal, a mail, a changelog, a spreadsheet."""
