"""From arguments to the number. Everything else may import this package. It imports flavors, presets and itself."""
