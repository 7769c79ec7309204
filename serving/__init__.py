"""Starts, watches and probes TorchServe: on a laptop, and as an image's entry point.

Standard library only, Python 3.9 or later. Read in this order: launch.py (from the start to the end), boot.py (what is
checked and chosen before: ports, archives, resources, worker_plan, java, server_config), what stays beside TorchServe
(run_folder, java_process, log_relay, worker_states, state_socket, signal_watch, drain), and ready.py (the probe).
"""

from __future__ import annotations
