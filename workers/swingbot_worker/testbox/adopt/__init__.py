"""`swingbot-worker adopt`: write the testbox file of a machine from what its idle system says."""
