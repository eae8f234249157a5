"""The classifier over HTTP: requests computed together, within limits; Label Studio."""
