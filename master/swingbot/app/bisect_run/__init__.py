"""`swingbot bisect run`: a bisection of any benchmark of any project, without service or database. Its facts are a git range and a journal."""
