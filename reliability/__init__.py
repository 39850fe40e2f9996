"""Long runs that try to break the library; docs/reliability.md lists them."""
