"""The fast encoder on CPUs: an OpenVINO graph that `marvec pack` made of the transformer.

The graph takes `input_ids`, `position_ids` and `segments` where several inputs may share a row (a token sees those of
its own segment only), else `input_ids` and `attention_mask`, and `token_type_ids` where the model tells texts of a pair
by them; all are [rows, length] int64. It gives hidden states [rows, length, hidden] float32; with a classifier's head,
for which it may also take `places` (see layout.py), logits [inputs, labels] float32.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from marvec.batching import Policy
from marvec.encoder.layout import lay_out, places
from marvec.encoder.openvino_runtime import core, openvino
from marvec.errors import ModelDirError
from marvec.settings import EngineSettings

if TYPE_CHECKING:
    from marvec.encoder import Rows

GRAPH = "openvino_model.xml"
WEIGHTS = "openvino_model.bin"
HIDDEN_SIZE = "marvec_hidden_size"  # what a graph that gives logits says of itself
_BATCH_TOKENS = 512
# Passes of one thread each are faster than one of all threads, but need the weights in memory a second time, laid out
# for another number of threads. Matrices of a model of this size keep all threads busy anyway.
_LARGEST_WITH_LANES_BYTES = 800_000_000


class OpenVinoEncoder:
    """A graph compiled for this machine's CPU."""

    name = "openvino"
    device = "cpu"

    def __init__(self, graph: openvino.Model, settings: EngineSettings, threads: int, lanes: int) -> None:
        """Compile a graph.

        Args:
            graph: As described at the top of this file.
            settings: For the dtype and the batch budget.
            threads: Threads of a pass that runs alone.
            lanes: Passes to run side by side, with one thread each; 1 for none.
        """
        self._inputs = [port.get_any_name() for port in graph.inputs]
        self.dtype = settings.dtype
        self.threads = threads
        self.policy = Policy(
            max_tokens=settings.max_batch_tokens or _BATCH_TOKENS,
            packs_rows="segments" in self._inputs,
            deals_out="places" in self._inputs,
            lanes=lanes,
            hidden=_hidden_size(graph),
        )
        alone = _compile(graph, settings.dtype, threads, streams=1)
        self._request = alone.create_infer_request()
        self._lanes = _compile(graph, settings.dtype, lanes, streams=lanes) if lanes > 1 else alone

    @classmethod
    def load(cls, folder: Path, settings: EngineSettings) -> OpenVinoEncoder:
        """Read and compile a graph, with as many threads as torch would take (OMP_NUM_THREADS, or the CPU's cores).

        Raises:
            ModelDirError: When there is no graph, or OpenVINO cannot read it.
        """
        try:
            graph = core().read_model(folder / GRAPH)
            threads = torch.get_num_threads()
            lanes = threads if (folder / WEIGHTS).stat().st_size <= _LARGEST_WITH_LANES_BYTES else 1
            return cls(graph, settings, threads, lanes)
        except (OSError, RuntimeError) as err:
            raise ModelDirError(f"{folder / GRAPH}: OpenVINO cannot load it; pack the model again: {err}") from err

    def encode(self, passes: Sequence[Rows]) -> Iterator[Tensor]:
        """Run passes; while the caller takes one result, the next ones are already computed."""
        if len(passes) == 1:
            laid_out = inputs(passes[0], self._inputs)
            # This thread computes too; handing over to another and waiting for it takes a tenth longer.
            self._request.infer({name: laid_out[name] for name in self._inputs}, share_inputs=True)
            yield _result(self._request, laid_out["segments"])
        else:
            yield from self._encode_in_lanes(passes)

    def _encode_in_lanes(self, passes: Sequence[Rows]) -> Iterator[Tensor]:
        idle = [self._lanes.create_infer_request() for _ in range(min(len(passes), self.policy.lanes + 1))]
        running: deque[tuple[openvino.InferRequest, NDArray[np.int64]]] = deque()
        for rows in passes:
            laid_out = inputs(rows, self._inputs)
            finished = []
            if not idle:
                idle.append(running[0][0])
                finished.append(_result(*running.popleft()))
            running.append((idle.pop(), laid_out["segments"]))
            running[-1][0].start_async({name: laid_out[name] for name in self._inputs}, share_inputs=True)
            yield from finished
        for request, segments in running:
            yield _result(request, segments)


def inputs(rows: Rows, names: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """What a graph with inputs of these names takes for a pass, and `segments`."""
    laid_out = lay_out(rows)
    if "places" in names:
        laid_out["places"] = places(rows, laid_out["segments"])
    return laid_out


def _hidden_size(graph: openvino.Model) -> int:
    shape = graph.outputs[0].partial_shape
    if len(shape) == 3:
        return int(shape[2].get_length())
    return int(graph.get_rt_info(HIDDEN_SIZE).astype(int))


def _compile(graph: openvino.Model, dtype: str, threads: int, streams: int) -> openvino.CompiledModel:
    options = {
        "NUM_STREAMS": streams,
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "bf16" if dtype == "bfloat16" else "f32",
        "ENABLE_CPU_PINNING": False,  # it pins to the first cores: two workers would fight for them
    }
    return core().compile_model(graph, "CPU", options)


def _result(request: openvino.InferRequest, segments: NDArray[np.int64]) -> Tensor:
    """Wait for a pass; its logits, or its hidden states without those of padding."""
    request.wait()
    output = request.get_output_tensor(0).data
    return torch.from_numpy(output[segments > 0] if output.ndim == 3 else output.copy())
