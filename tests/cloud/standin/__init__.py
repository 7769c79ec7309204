"""A stand-in of the Vertex AI API on 127.0.0.1, for tests of what calls it.

What a test against it shows: that calls are well formed, by the messages of Google's own SDK, and that a flow is right:
its order, its waits, its answers to trouble. It does NOT show that Google accepts them. The rules that go beyond the
messages' own documentation are ours, from memory and from public issue threads; where one is unverified, its place in
the code says so, and wherever the documentation can be read in two ways, only what satisfies both is taken.

Containers are real processes of this machine, started, probed and ended as Vertex AI says that it does. What differs:
- several containers share one machine, so AIP_HTTP_PORT is a free port, not the first of `containerSpec.ports`;
- one process stands for all replicas, and nothing scales; a container that ends is not started again;
- accelerators, service accounts, keys, networks, request logging and quotas are noted, and do nothing;
- no BigQuery: a job that reads or writes there is checked, and then fails.

The wires (rest.py, grpc_wire.py, proxy.py) hand each call to core.py, which asks trouble.py, writes calls.py's log, and
calls one of models.py, endpoints.py, predictions.py, jobs.py and operations.py. stand_in.py starts all of it.
"""
