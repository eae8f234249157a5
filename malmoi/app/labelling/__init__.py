"""The labelling card: a component that holds the next texts in the browser, and its server side."""
