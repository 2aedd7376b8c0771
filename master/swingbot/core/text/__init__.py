"""Words of every text that people read: lines (`plain`) and numbers (`numbers`)."""
