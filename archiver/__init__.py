"""Model directory or hub id -> verified .mar: find, check, settle, stage, archive, prove, put in place.

source.py, hub.py    where the model's files are
checks.py            what Marvec cannot serve, refused before any work
choices.py           what the files leave open: pooling, prompts, length; families.py knows what some model cards fix
staging.py           the archive's tree, with tokenizer_file.py, weights.py and weight_check.py
reference.py         the vectors to reach: the weights on PyTorch, or a TorchScript file (torchscript_file.py)
engine.py            the encoder that is shipped: openvino_export.py with openvino_forms.py, int8.py with calibration.py
archive.py           the .mar, by torch-model-archiver
proof.py             loaded and asked in a fresh process, as TorchServe's worker does it (worker_check.py)
vertex_prebuilt.py   a second archive for Google's prebuilt containers, with what they lack in it
pack.py              all of these in order; command.py is its command line
"""
