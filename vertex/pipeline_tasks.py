"""The pipelines as Kubeflow's compiler reads them: containers, what each is given, and the order.

    marvec-endpoint   pack -> upload -> deploy -> smoke     from a model to an endpoint that was asked
    marvec-batch      batch                                 predictions for a file or a table, mostly on a schedule

No image is built: the model's image is one that fetches its archive (`marvec image build --no-model`), and the archive
is an artifact of the pack step. kfp needs older releases than the rest of this project, so nothing imports this module
but what compiles.
"""
# ruff: noqa: I002 -- kfp reads annotations, and finds no types in them where they are strings.

from kfp import compiler, dsl

from vertex.pipeline_run import BATCH, ENDPOINT

_STEP = ["python", "-m", "vertex.step"]
_SETTINGS = ["--settings", "vertex.yaml"]
_NONE = "-"
# Packing holds the weights several times: as they came, as PyTorch's, and as OpenVINO's.
_PACK_CPUS = "4"
_PACK_MEMORY = "16G"


def compile_to(file: str, pipeline: str, image: str) -> None:
    """Compile a pipeline.

    Args:
        file: Written, as YAML.
        pipeline: ENDPOINT or BATCH.
        image: What the steps run in: marvec with its extras pack and vertex. It becomes fixed, since it is not known
            whether Vertex AI takes an image from a parameter.
    """
    made = {ENDPOINT: _endpoint, BATCH: _batch}[pipeline](image)
    compiler.Compiler().compile(made, file)


def _endpoint(image: str) -> dsl.base_component.BaseComponent:
    def pack(settings: str, model: str, options: str, archive: dsl.Output[dsl.Artifact]) -> dsl.ContainerSpec:
        command = ["marvec", "pack"]
        return dsl.ContainerSpec(image, [*_STEP, "pack"], [settings, archive.uri, model, options, "--", *command])

    def upload(settings: str, archive: dsl.Input[dsl.Artifact]) -> dsl.ContainerSpec:
        command = ["marvec", "vertex", "upload", *_SETTINGS]
        return dsl.ContainerSpec(image, [*_STEP, "run"], [settings, archive.uri, _NONE, "--", *command])

    def deploy(settings: str, archive: dsl.Input[dsl.Artifact]) -> dsl.ContainerSpec:
        command = ["marvec", "vertex", "deploy", *_SETTINGS]
        return dsl.ContainerSpec(image, [*_STEP, "run"], [settings, archive.uri, _NONE, "--", *command])

    def smoke(settings: str, archive: dsl.Input[dsl.Artifact]) -> dsl.ContainerSpec:
        return dsl.ContainerSpec(image, [*_STEP, "smoke"], [settings, archive.uri])

    def road(settings: str, model: str, pack_options: str = _NONE) -> None:
        packed = dsl.container_component(pack)(settings=settings, model=model, options=pack_options)
        # What lies under the same name may have changed: submit --cache allows it for a run.
        packed.set_caching_options(False).set_cpu_limit(_PACK_CPUS).set_memory_limit(_PACK_MEMORY)
        archive = packed.outputs["archive"]
        before = packed
        for step in (upload, deploy, smoke):
            task = dsl.container_component(step)(settings=settings, archive=archive).after(before)
            # No retries: the commands go on by themselves after a cut, and what fails all the same would fail again.
            before = task.set_caching_options(False)

    about = "From a model to a Vertex AI endpoint that gives its golden answers."
    return dsl.pipeline(name=ENDPOINT, description=about)(road)


def _batch(image: str) -> dsl.base_component.BaseComponent:
    def batch(settings: str, source: str, destination: str, options: str) -> dsl.ContainerSpec:
        command = ["marvec", "vertex", "batch-predict", *_SETTINGS, "--from", source, "--to", destination]
        return dsl.ContainerSpec(image, [*_STEP, "run"], [settings, _NONE, options, "--", *command])

    def road(settings: str, source: str, destination: str, options: str = _NONE) -> None:
        given = {"settings": settings, "source": source, "destination": destination, "options": options}
        dsl.container_component(batch)(**given).set_caching_options(False)

    about = "A prediction for each row of a file or a table, by a batch prediction."
    return dsl.pipeline(name=BATCH, description=about)(road)
