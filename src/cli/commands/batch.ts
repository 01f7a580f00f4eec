import type { Command } from "commander";
import { BatchClient, type BatchObject, FILE_NAME_KEY } from "../batch/batch-client.ts";
import { OutputFile, readBatchFile } from "../batch/batch-files.ts";
import { followBatch } from "../batch/follow-batch.ts";
import { CliError, EXIT, usageError } from "../cli-error.ts";
import { type CliIo, write, writeJson, writeLine, writeLines } from "../cli-io.ts";
import { connect } from "../client/daemon-address.ts";
import { clientCommand, type ClientOptions } from "../options/common-options.ts";
import { commandLine, formatFields, formatTable, printable } from "../terminal/format.ts";

interface BatchOptions extends ClientOptions {
  output?: string;
  new?: boolean;
  force?: boolean;
}

type Action = (io: CliIo, client: BatchClient, id: string, options: BatchOptions) => Promise<void>;

const ACTIONS: ReadonlyMap<string, Action> = new Map<string, Action>([
  ["list", list],
  ["show", show],
  ["cancel", cancel],
  ["output", output],
]);

/** daybreak batch <file> | list | show | cancel | output */
export function batchCommand(io: CliIo): Command {
  return clientCommand("batch", "print the batch, or the list, as JSON")
    .description("answer a file of requests in the background; the same file again goes on with its batch")
    .argument(
      "<file>",
      "JSONL file of requests as for /v1/batches; or: list, show <id>, cancel <id>, output <id>",
    )
    .argument("[id]", "the batch to show or cancel, or whose output to print")
    .option("-o, --output <file>", "write the answers to a file instead of printing them")
    .option("--new", "begin anew, even if a batch was made of the same file")
    .option("--force", "with --output: replace the file, whatever is in it")
    .action(async (what: string, id: string | undefined, options: BatchOptions) => {
      const client = new BatchClient(connect(io, options));
      const action = ACTIONS.get(what);
      if (!action) {
        if (id !== undefined) throw usageError("Name one file of requests.");
        if (what === "-")
          throw usageError("Name a file of requests: by its content its batch is found again.");
        return await run(io, client, what, options);
      }
      if (what === "list" && id !== undefined)
        throw usageError("daybreak batch list takes no name; to see one batch: daybreak batch show <id>");
      if (what !== "list" && id === undefined)
        throw usageError(`Name the batch: daybreak batch ${what} <id>`);
      return await action(io, client, id ?? "", options);
    });
}

async function run(io: CliIo, client: BatchClient, path: string, options: BatchOptions): Promise<void> {
  const file = await readBatchFile(path);
  await outputFile(options)?.checkWritable(path);
  const { batch: found, newer } = options.new ? {} : await client.find(file);
  const previousOutput = found && hasOutput(found) ? client.output(found) : undefined;
  await outputFile(options)?.checkOverwrite({ previousOutput, force: options.force === true });
  const started = found ?? (await client.create(file));
  const { id } = started;
  if (newer) await writeLine(io.stderr, `The newest batch of this file, ${newer.id}, is ${newer.status}.`);
  await writeLine(io.stderr, found ? `Going on with ${id}, which is ${found.status}.` : `Created ${id}.`);
  if (found?.status === "completed" && found.request_counts.failed > 0) {
    const { failed, total } = found.request_counts;
    await writeLine(
      io.stderr,
      `${failed} of its ${total} requests did not succeed; --new runs the file again.`,
    );
  }
  try {
    const batch = await followBatch(io, client, started);
    await writeAnswers(io, client, batch, options);
  } catch (error) {
    if (io.signal.aborted) {
      const watch = commandLine([
        "batch",
        path,
        ...outputArguments(options),
        ...connectionArguments(options),
      ]);
      const stop = commandLine(["batch", "cancel", id, ...connectionArguments(options)]);
      await writeLine(
        io.stderr,
        `\nThe daemon goes on with ${id}. To watch it again: ${watch}\nTo cancel it: ${stop}`,
      );
    }
    throw error;
  }
}

async function list(io: CliIo, client: BatchClient, _id: string, { json }: BatchOptions): Promise<void> {
  const batches: BatchObject[] = [];
  for await (const batch of client.list()) batches.push(batch);
  if (json) {
    const [first, last] = [batches[0]?.id ?? null, batches.at(-1)?.id ?? null];
    const all = { object: "list", data: batches, first_id: first, last_id: last, has_more: false };
    return await writeJson(io.stdout, all);
  }
  const isNamed = batches.every(({ metadata }) => metadata?.[FILE_NAME_KEY] !== undefined);
  const names = isNamed ? new Map<string, string>() : await client.fileNames();
  const rows = batches.map(({ id, status, request_counts: counts, created_at: at, metadata, ...batch }) => {
    const { total, completed, failed, unanswered = 0 } = counts;
    return [
      id,
      status,
      `${completed + failed - unanswered}/${total}`,
      String(failed - unanswered),
      String(unanswered),
      new Date(at * 1000).toISOString(),
      printable(metadata?.[FILE_NAME_KEY] ?? names.get(batch.input_file_id) ?? ""),
    ];
  });
  await writeLines(
    io.stdout,
    formatTable(["ID", "STATUS", "DONE", "FAILED", "UNANSWERED", "CREATED", "FILE"], rows),
  );
}

async function show(io: CliIo, client: BatchClient, id: string, { json }: BatchOptions): Promise<void> {
  const batch = await client.get(id);
  if (json) return await writeJson(io.stdout, batch);
  const { total, completed, failed, unanswered = 0 } = batch.request_counts;
  const name = batch.metadata?.[FILE_NAME_KEY] ?? (await client.fileName(batch.input_file_id));
  const fields: [string, string][] = [
    ["id", batch.id],
    ["status", batch.waiting === undefined ? batch.status : `${batch.status}, ${printable(batch.waiting)}`],
    ["endpoint", batch.endpoint],
    [
      "requests",
      `${total}, ${completed} completed, ${failed - unanswered} failed${unanswered > 0 ? `, ${unanswered} not answered` : ""}`,
    ],
    ["tokens", `${batch.usage.input_tokens} in, ${batch.usage.output_tokens} out`],
    ["created", new Date(batch.created_at * 1000).toISOString()],
    ["file", printable(name ?? batch.input_file_id)],
  ];
  await writeLines(io.stdout, formatFields(fields));
  await writeLines(io.stdout, problemLines(batch));
}

async function cancel(io: CliIo, client: BatchClient, id: string, { json }: BatchOptions): Promise<void> {
  const batch = await client.cancel(id);
  if (json) return await writeJson(io.stdout, batch);
  await writeLine(io.stdout, `Cancelled ${batch.id}; what is answered: daybreak batch output ${batch.id}`);
}

async function output(io: CliIo, client: BatchClient, id: string, options: BatchOptions): Promise<void> {
  await outputFile(options)?.checkWritable();
  const batch = await client.get(id);
  const previousOutput = hasOutput(batch) ? client.output(batch) : undefined;
  await outputFile(options)?.checkOverwrite({ previousOutput, force: options.force === true });
  await writeAnswers(io, client, batch, options);
}

/** Prints or writes the answers of a finished batch. @throws CliError if some requests have no answer */
async function writeAnswers(
  io: CliIo,
  client: BatchClient,
  batch: BatchObject,
  options: BatchOptions,
): Promise<void> {
  const { id, status, request_counts: counts } = batch;
  if (status === "failed") throw usageError(`The batch ${id} has failed.\n${problemLines(batch).join("\n")}`);
  if (!hasOutput(batch))
    throw new CliError(
      EXIT.conflict,
      "batch_conflict",
      `The batch ${id} is ${status}; its output is not there yet.`,
    );
  const file = outputFile(options);
  if (file) await file.write(client.output(batch), io.signal);
  else if (!options.json) await print(io, client.output(batch));
  if (options.json) await writeJson(io.stdout, batch);
  if (file) await writeLine(io.stderr, `Wrote ${describeContent(counts)} to ${file.path}.`);
  if (counts.failed === 0) return;
  const what = status === "completed" ? "did not succeed" : `did not succeed: the batch is ${status}`;
  const reason = await client.mostCommonError(batch);
  const why = reason === undefined ? "" : ` (${printable(reason.code)}: ${reason.count})`;
  throw new CliError(
    EXIT.error,
    "batch_incomplete",
    `${counts.failed} of ${counts.total} requests ${what}${why}.`,
  );
}

/** "2 answers", or "2 answers and 58 requests that were not answered" */
function describeContent({ total, unanswered = 0 }: BatchObject["request_counts"]): string {
  const answers = `${total - unanswered} answers`;
  if (unanswered === 0) return answers;
  return `${answers} and ${unanswered} ${unanswered === 1 ? "request that was" : "requests that were"} not answered`;
}

async function print(io: CliIo, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  // A character may be split over two chunks.
  const decoder = new TextDecoder();
  for await (const chunk of chunks) await write(io.stdout, decoder.decode(chunk, { stream: true }));
}

function outputFile({ output: file }: BatchOptions): OutputFile | undefined {
  return file === undefined ? undefined : new OutputFile(file);
}

/** Output options of this command line, to repeat them in advice. */
function outputArguments({ output: file, force, json }: BatchOptions): string[] {
  return [
    ...(file === undefined ? [] : ["-o", file]),
    ...(force ? ["--force"] : []),
    ...(json ? ["--json"] : []),
  ];
}

/** Connection options of this command line, to repeat them in advice. */
function connectionArguments(options: ClientOptions): string[] {
  return (["url", "socket", "config"] as const).flatMap((name) => {
    const value = options[name];
    return value === undefined ? [] : [`--${name}`, value];
  });
}

function hasOutput(batch: BatchObject): boolean {
  return batch.output_file_id !== null || batch.error_file_id !== null;
}

function problemLines({ errors }: BatchObject): string[] {
  return (errors?.data ?? []).map(
    ({ line, message }) => `${line === null ? "" : `line ${line}: `}${printable(message)}`,
  );
}
