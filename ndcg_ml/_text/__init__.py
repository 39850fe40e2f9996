"""How results are written: tables, escaping and values for JSON. It imports no result."""
