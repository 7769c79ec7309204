"""Builds, runs and pushes images with docker or podman: `marvec image build|run|push`.

engine.py finds the program and runs it; build.py, run.py and push.py are one command each; command.py is the command
line. What an image holds is in docker/.
"""
