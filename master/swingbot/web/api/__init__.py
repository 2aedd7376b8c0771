"""The description of the API: documents, operations, and what is made of both."""
