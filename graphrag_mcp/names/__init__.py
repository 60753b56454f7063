"""Names, types and aliases in text without a model."""

# Of what is found in a text; raised when names are found otherwise, so that indexes are derived again.
VERSION = "nlp-75"
