"""The command line of predictions: now, from the endpoint, and in a batch, by a job."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from vertex import batch as batches
from vertex import gcloud, instances, payload
from vertex.errors import VertexError
from vertex.options import VERTEX_YAML, DryRun, Json, SettingsFile
from vertex.predict import Predictor, content, url
from vertex.work import Work

Parameters = Annotated[
    str | None,
    typer.Option(
        metavar="JSON",
        help='Parameters, such as \'{"outputDimensionality": 256}\', or of a classifier \'{"output": "label"}\'.',
    ),
]


def predict(
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts; a lone - for stdin.")] = None,
    settings: SettingsFile = VERTEX_YAML,
    file: Annotated[str | None, typer.Option(help="A file of instances; - for stdin.")] = None,
    form: Annotated[
        instances.Format | None,
        typer.Option(
            "--format",
            help="text (a line each, empty ones too), jsonl or json (a request).  \\[default: by the suffix]",
        ),
    ] = None,
    parameters: Parameters = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Send the file's bytes to the model server as they are, and print its answer.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Ask the endpoint, and print a prediction a line.

    Example: marvec vertex predict 'query: hello' 'passage: world' --parameters '{"outputDimensionality": 4}'

    Example: marvec vertex predict 'What a lovely place.' --parameters '{"output": "label"}'
    """
    work = Work(settings, dry_run=dry_run, as_json=as_json)
    file = "-" if texts == ["-"] and file is None else file
    if file is None and not texts:
        raise VertexError("what is to be asked: texts on the command line, or --file FILE")
    if file is not None and texts not in (None, [], ["-"]):
        raise VertexError("texts on the command line, and --file: expected one of the two")
    if raw:
        _raw(work, file, parameters)
        return
    asked = instances.Request(list(texts or ())) if file is None else instances.read(file, form)
    chosen = instances.parameters(parameters) if parameters is not None else asked.parameters
    with work.going_on():
        if dry_run:
            _show(work, asked.instances, chosen)
            return
        predictions = Predictor(work.settings, work.endpoint()).predict(asked.instances, chosen)
        if as_json:
            work.result({"predictions": list(predictions)})
            return
        for prediction in predictions:
            typer.echo(json.dumps(prediction, ensure_ascii=False))


def batch_predict(
    source: Annotated[
        str, typer.Option("--from", metavar="gs://…|bq://…", help="JSON lines, an instance each, or a table.")
    ],
    destination: Annotated[str, typer.Option("--to", metavar="gs://…|bq://…", help="A folder, or a data set.")],
    settings: SettingsFile = VERTEX_YAML,
    version: Annotated[str | None, typer.Option(help="A version's number or alias.  \\[default: the newest]")] = None,
    column: Annotated[str | None, typer.Option(help="The column, or key of each object, that is the text.")] = None,
    parameters: Parameters = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Predict every row of a file or a table, without an endpoint, and wait for the end.

    Example: marvec vertex batch-predict --from gs://BUCKET/texts.jsonl --to gs://BUCKET/predictions
    """
    work = Work(settings, dry_run=dry_run, as_json=as_json)
    wanted = batches.Batch(source, destination, instances.parameters(parameters), column)
    with work.going_on():
        request = batches.request(work.settings, work.read().version(version), wanted)
        if dry_run:
            work.show_steps([request])
            return
        name = batches.start(work.api, work.settings, request, work.progress)
        job = batches.follow(work.api, work.settings, name, work.progress)
        stats = job.completion_stats
        if as_json:
            told = {"predicted": stats.successful_count, "failed": stats.failed_count}
            work.result({"job": name, "output": batches.where(job), **told})
        else:
            work.say(f"{stats.successful_count:,} rows predicted: {batches.where(job)}")
        batches.require_all_rows(job)


def _show(work: Work, asked: list[object], chosen: dict[str, object] | None) -> None:
    limit = payload.DEDICATED_BYTES if work.settings.endpoint.dedicated else payload.SHARED_BYTES
    steps = []
    done = 0
    while done < len(asked):
        batch = payload.fitting(asked, done, chosen, limit, len(asked))
        done += len(batch)
        body = content(batch, chosen)
        steps.append({"line": gcloud.predict_line(body, work.settings, _url(work)), "request": body})
    if work.as_json:
        work.result({"steps": steps})
    else:
        for step in steps:
            work.say(str(step["line"]))


def _url(work: Work) -> str:
    return url(work.settings, work.endpoint() if work.settings.endpoint.dedicated else None)


def _raw(work: Work, file: str | None, parameters: str | None) -> None:
    if file is None or parameters is not None or work.as_json:
        raise VertexError("--raw takes --file FILE alone: its bytes are the whole request")
    body = instances.read_bytes(file)
    with work.going_on():
        if work.dry_run:
            work.say(gcloud.raw_line(file, work.settings, _url(work)))
            return
        sys.stdout.buffer.write(Predictor(work.settings, work.endpoint()).raw(body))
