"""Write tables, escape text and convert values for JSON. These modules import no results."""
