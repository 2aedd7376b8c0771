"""What a report says, in which words. Facts in, text out."""
