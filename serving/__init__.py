"""Starts, watches and probes TorchServe: on a laptop, and as an image's entry point.

Standard library only, Python 3.9 or later. Read in this order: launch.py (the boot, step by step), what it stands on
(ports, archives, resources, worker_plan, java, server_config, run_folder), what runs beside TorchServe (java_process,
log_relay, worker_states, state_socket, drain), and ready.py (the probe).
"""

from __future__ import annotations
