"""Parts that several mails and printed forms share."""
