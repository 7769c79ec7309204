"""The road to a Vertex AI endpoint.

settings.py reads and checks the one settings file; machines.py knows which machine takes which accelerator, and from
which load on a replica is full.
"""
