"""The `marvec` command: puts together the commands that the other folders define, and has no logic of its own."""
