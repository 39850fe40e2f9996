"""Long runs that try to break the library: what was tried is on docs/reliability.md."""
