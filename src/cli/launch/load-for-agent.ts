import { z } from "zod";
import { loadResultSchema } from "../../api/wire/models.ts";
import { supportedContext } from "../../models/loading/choose-settings.ts";
import { CliError, EXIT } from "../cli-error.ts";
import { type CliIo, writeLine } from "../cli-io.ts";
import { ApiError, type DaemonClient } from "../client/daemon-client.ts";
import { defaultModel, modelPath } from "../client/find-model.ts";

/** Tokens of context, unless the user chooses: agents begin with 8,000 to 20,000 tokens of instructions and tools. */
const DEFAULT_AGENT_CONTEXT = 32_768;
/** Most agents do not work with less. */
export const MIN_AGENT_CONTEXT = 16_384;

const modelSchema = z.object({
  alias: z.string(),
  state: z.string(),
  context_size: z.int(),
  trained_context_size: z.int(),
  load_settings: z.object({ rope_freq_scale: z.number().optional() }),
  active_requests: z.int(),
  purpose: z.string(),
  capabilities: z.object({ tools: z.boolean() }),
});
type Model = z.output<typeof modelSchema>;

interface LoadedForAgent {
  readonly model: string;
  readonly contextSize: number;
}

/**
 * Loads a model with the context that coding agents need; reloads it if it is loaded with less.
 * @param name model; undefined: the default model
 * @param requestedContext tokens; undefined: as many as agents need and the model supports
 * @throws CliError if the model is unfit for agents, or in use with a smaller context
 */
export async function loadForAgent(
  io: CliIo,
  client: DaemonClient,
  name: string | undefined,
  requestedContext: number | undefined,
): Promise<LoadedForAgent> {
  const modelName = name ?? (await defaultModel(client));
  const model = await client.json(modelSchema, "GET", modelPath(modelName));
  const [wanted, ...smaller] = contextSizes(model, requestedContext);
  if (!model.capabilities.tools) {
    await writeLine(io.stderr, `Note: the template of ${model.alias} has no tools, which agents work with.`);
  }
  if (model.state === "loaded") {
    if (model.context_size >= wanted) return { model: model.alias, contextSize: model.context_size };
    await unloadIdle(client, model, wanted);
  }
  await writeLine(io.stderr, `Loading ${model.alias} with a context of ${wanted} tokens ...`);
  return await load(client, model.alias, [wanted, ...smaller]);
}

/** Context sizes to try, the largest first. */
function contextSizes(model: Model, requestedContext: number | undefined): readonly [number, ...number[]] {
  const { alias, purpose, trained_context_size: trained, load_settings: settings } = model;
  if (purpose !== "generate") {
    throw unfitModel(`${alias} does not generate text; name another model with --model.`);
  }
  if (requestedContext !== undefined) return [requestedContext];
  const reachable = supportedContext({ contextLength: trained }, { ropeFreqScale: settings.rope_freq_scale });
  if (reachable > 0 && reachable < MIN_AGENT_CONTEXT) {
    throw unfitModel(
      `${alias} was trained for ${trained} tokens of context${reachable > trained ? `, and is stretched to ${reachable}` : ""}, and coding agents begin with more; name a model for ${MIN_AGENT_CONTEXT} or more with --model ("daybreak search" and "daybreak pull" get one).`,
    );
  }
  const wanted = reachable > 0 ? Math.min(reachable, DEFAULT_AGENT_CONTEXT) : DEFAULT_AGENT_CONTEXT;
  return wanted > MIN_AGENT_CONTEXT ? [wanted, MIN_AGENT_CONTEXT] : [wanted];
}

function unfitModel(message: string): CliError {
  return new CliError(EXIT.usage, "model_unfit", message);
}

async function unloadIdle(client: DaemonClient, model: Model, wanted: number): Promise<void> {
  const { alias, active_requests: requests, context_size: has } = model;
  if (requests > 0) {
    throw new CliError(
      EXIT.conflict,
      "model_busy",
      `${alias} is in use with a context of ${has} tokens, and has to be loaded again for ${wanted}; wait for its requests, or ask for less with --context-size.`,
    );
  }
  await client.json(z.unknown(), "POST", modelPath(alias, "unload"));
}

async function load(
  client: DaemonClient,
  alias: string,
  [size, ...smaller]: readonly number[],
): Promise<LoadedForAgent> {
  try {
    const body = { alias, context_size: size };
    const { context_size: contextSize } = await client.json(
      loadResultSchema,
      "POST",
      "/api/models/load",
      body,
    );
    return { model: alias, contextSize };
  } catch (error) {
    const isTooMuch = error instanceof ApiError && error.code === "insufficient_memory";
    if (!isTooMuch || smaller.length === 0) throw error;
    return await load(client, alias, smaller);
  }
}
