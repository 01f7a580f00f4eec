import { readFile, writeFile } from "node:fs/promises";
import { Argument, type Command } from "commander";
import { z } from "zod";
import { toError } from "../../errors/service-error.ts";
import {
  compareResults,
  type Comparison,
  describeDifference,
  type Experiment,
  experimentFiles,
  type ExperimentModelFile,
  parseExperiment,
  printExperiment,
} from "../../experiments/experiments.ts";
import { CliError, EXIT, usageError, writeError } from "../cli-error.ts";
import { type CliIo, write, writeJson, writeLine, writeLines } from "../cli-io.ts";
import { connect } from "../client/daemon-address.ts";
import type { DaemonClient } from "../client/daemon-client.ts";
import { modelPath, withLoadedModel } from "../client/find-model.ts";
import { clientCommand, type ClientOptions, parseInteger, parseNumber } from "../options/common-options.ts";
import {
  generationFields,
  type GenerationOptions,
  withGenerationOptions,
} from "../options/generation-options.ts";
import { AnswerDisplay } from "../terminal/answer-display.ts";
import { formatProbability } from "../../json/quantities.ts";
import { printable } from "../terminal/format.ts";
import { modelFilesSchema } from "../../api/wire/models.ts";
import { type ExperimentResult, experimentResultSchema } from "../../api/wire/native.ts";

interface ExperimentOptions extends ClientOptions, GenerationOptions {
  output?: string;
  raw?: boolean;
  alternatives?: number;
  tolerance?: number;
  anyModel?: boolean;
}

/** Origin in the description of a model. */
const originSchema = z.object({ source: z.string(), from: z.string().optional() });

/** Tokens shown before the first difference. */
const TOKENS_BEFORE_DIFFERENCE = 8;

const ACTIONS = { record, run, diff };

/** daybreak experiment record | run | diff */
export function experimentCommand(io: CliIo): Command {
  return withGenerationOptions(clientCommand("experiment", "print the result or the comparison as JSON"))
    .description("record what a model answers, token by token; run it again anywhere, and compare")
    .addArgument(
      new Argument(
        "<action>",
        "record a prompt; run a file, and compare with what it recorded; diff two files",
      ).choices(Object.keys(ACTIONS)),
    )
    .argument("[words...]", "the prompt to record, the file to run, or the two files to compare")
    .option("-o, --output <file>", "write the experiment with its new result to a file")
    .option("--raw", "record: let the model continue the prompt as it is, without its chat template")
    .option("--alternatives <n>", "record: alternatives to keep for each token (default: 5)", parseInteger(0))
    .option(
      "--tolerance <n>",
      "largest difference of log-probabilities that is not one; 0: equal to the last bit",
      parseNumber,
    )
    .option("--any-model", "run: with the model of that name, even if its files are others")
    .action(async (action: keyof typeof ACTIONS, words: string[], options: ExperimentOptions) =>
      ACTIONS[action](io, words, options),
    );
}

async function record(io: CliIo, words: readonly string[], options: ExperimentOptions): Promise<void> {
  const prompt = words.join(" ").trim();
  if (prompt === "")
    throw usageError('No prompt given. Pass it as arguments: daybreak experiment record "..."');
  if (options.raw && options.system !== undefined) throw usageError("--raw takes no system prompt.");
  const fields = await generationFields(options);
  const messages = [
    ...(options.system === undefined ? [] : [{ role: "system" as const, content: options.system }]),
    { role: "user" as const, content: prompt },
  ];
  const request = JSON.parse(
    JSON.stringify({
      ...(options.raw ? { prompt } : { messages }),
      ...fields,
      model: undefined,
      seed: options.seed ?? 0,
      alternatives: options.alternatives,
    }),
  );
  const client = connect(io, options);
  const result = await requestResult(io, client, options.model, request);
  const experiment: Experiment = {
    experiment: 1,
    model: await describeModel(client, result.model),
    request,
    result,
  };
  if (options.output === undefined) return write(io.stdout, printExperiment(experiment));
  await save(options.output, experiment);
  if (options.json) return writeJson(io.stdout, result);
  await showAnswer(io, result, options);
  return writeLine(io.stderr, `Recorded in ${options.output}.`);
}

async function run(io: CliIo, words: readonly string[], options: ExperimentOptions): Promise<void> {
  const [file, ...others] = words;
  if (file === undefined || others.length > 0) throw usageError("Name one file to run.");
  const experiment = await read(file);
  const client = connect(io, options);
  const name = options.model ?? experiment.model.name;
  if (!options.anyModel) await checkModel(client, name, experiment);
  const result = await requestResult(io, client, name, experiment.request);
  if (options.output !== undefined) await save(options.output, { ...experiment, result });
  if (!options.json) await showAnswer(io, result, options);
  if (experiment.result) return report(io, experiment.result, result, ["recorded", "now"], options);
  return options.json ? writeJson(io.stdout, { result }) : undefined;
}

async function diff(io: CliIo, words: readonly string[], options: ExperimentOptions): Promise<void> {
  const [left, right, ...others] = words;
  if (left === undefined || right === undefined || others.length > 0) {
    throw usageError("Name two files to compare.");
  }
  const [one, other] = [await readResult(left), await readResult(right)];
  return report(io, one, other, ["first", "second"], options);
}

async function requestResult(
  io: CliIo,
  client: DaemonClient,
  model: string | undefined,
  request: object,
): Promise<ExperimentResult> {
  const body = { ...request, model };
  return withLoadedModel(io, client, model, () =>
    client.json(experimentResultSchema, "POST", "/api/experiment", body),
  );
}

async function describeModel(client: DaemonClient, name: string): Promise<Experiment["model"]> {
  const { source, from } = await client.json(originSchema, "GET", modelPath(name));
  return {
    name,
    ...(source === "hub" && from !== undefined && { source: from }),
    files: await filesOf(client, name),
  };
}

async function filesOf(client: DaemonClient, name: string): Promise<ExperimentModelFile[]> {
  const { files } = await client.json(modelFilesSchema, "GET", `${modelPath(name)}/files`);
  return experimentFiles(files);
}

async function checkModel(client: DaemonClient, name: string, { model }: Experiment): Promise<void> {
  if (!model.files) return;
  const wanted = model.files.map(({ sha256 }) => sha256);
  const found = (await filesOf(client, name)).map(({ sha256 }) => sha256);
  if (wanted.join() === found.join()) return;
  throw new CliError(
    EXIT.error,
    "other_model",
    `The daemon's model "${printable(name)}" has other files than the one of the experiment. Name another model with -m, or compare all the same with --any-model.`,
  );
}

async function report(
  io: CliIo,
  left: ExperimentResult,
  right: ExperimentResult,
  names: readonly [string, string],
  options: ExperimentOptions,
): Promise<void> {
  const comparison = compareResults(left, right);
  const exceedsTolerance = comparison.logprobDifference > (options.tolerance ?? Number.POSITIVE_INFINITY);
  if (options.json) await writeJson(io.stdout, { ...comparison, result: right });
  else await writeLines(io.stdout, comparisonLines(comparison, left, right, names));
  if (comparison.isSame && !exceedsTolerance) return;
  throw new CliError(
    EXIT.error,
    "experiment_differs",
    comparison.isSame
      ? `The log-probabilities differ by ${comparison.logprobDifference}, more than --tolerance ${options.tolerance}.`
      : "The results differ.",
  );
}

async function showAnswer(io: CliIo, result: ExperimentResult, options: ExperimentOptions): Promise<void> {
  const display = new AnswerDisplay(io, options);
  await display.thinking(result.thinking ?? "");
  await display.text(result.text);
  await display.end();
  for (const { function: call } of result.tool_calls ?? []) {
    await writeLine(io.stdout, printable(`${call.name}(${call.arguments})`));
  }
  if (options.verbose) await display.statistics(result);
}

async function read(file: string): Promise<Experiment> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw usageError(`The file cannot be read: ${toError(error).message}`);
  }
  try {
    return parseExperiment(text);
  } catch (error) {
    throw usageError(`${file}: ${toError(error).message}`);
  }
}

async function readResult(file: string): Promise<ExperimentResult> {
  const { result } = await read(file);
  if (!result) throw usageError(`${file} has no result. Run it with -o to record one.`);
  return result;
}

async function save(file: string, experiment: Experiment): Promise<void> {
  try {
    await writeFile(file, printExperiment(experiment));
  } catch (error) {
    throw writeError("The file", error);
  }
}

/**
 * Describes the comparison of two results in lines.
 * @param names names of the two results
 */
function comparisonLines(
  comparison: Comparison,
  left: ExperimentResult,
  right: ExperimentResult,
  names: readonly [string, string],
): string[] {
  const { isSame, sameTokens } = comparison;
  const logprobs = describeDifference(comparison);
  if (isSame) return [`Same: ${sameTokens} tokens, ${logprobs}.`];
  const lines = [
    `Differs at token ${sameTokens + 1} (of ${left.tokens.length} and ${right.tokens.length}); until there ${logprobs}.`,
  ];
  for (const [name, token, { tokens }] of [
    [names[0], comparison.left, left],
    [names[1], comparison.right, right],
  ] as const) {
    const before = printable(
      tokens
        .slice(Math.max(0, sameTokens - TOKENS_BEFORE_DIFFERENCE), sameTokens)
        .map((each) => each.token)
        .join(""),
    );
    lines.push(`  ${name.padEnd(8)} ${JSON.stringify(before)} + ${token ? describeToken(token) : "the end"}`);
    if (token && token.top.length > 0) lines.push(`           of ${token.top.map(describeToken).join(", ")}`);
  }
  return lines;
}

function describeToken({ token, logprob }: { token: string; logprob: number }): string {
  return `${printable(JSON.stringify(token))} (${formatProbability(logprob)})`;
}
