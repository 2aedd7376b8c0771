"""Building blocks shared by mails and other printed formats."""
