import { z } from "zod";
import { loadResultSchema } from "../../api/management/model-schemas.ts";
import { reachableContext } from "../../models/loading/choose-settings.ts";
import { CliError, EXIT } from "../cli-error.ts";
import { type CliIo, writeLine } from "../cli-io.ts";
import { ApiError, type DaemonClient } from "../client/daemon-client.ts";
import { modelPath } from "../client/find-model.ts";

/** Agents begin with 8,000 to 20,000 tokens of instructions and tools; the rest is for the work. */
const AGENT_CONTEXT = 32_768;
/** With less most agents cannot begin. */
export const LEAST_AGENT_CONTEXT = 16_384;

const statusSchema = z.object({ default_model: z.string() });
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
 * Sees to it that a model is loaded with the context that coding agents need, and loads it again where it has less.
 * @param name undefined: the default model
 * @param asked tokens of context that the user wants; undefined: as many as agents need and the model can reach
 * @throws CliError when the model is not for agents, or is in use with a smaller context
 */
export async function loadForAgent(
  io: CliIo,
  client: DaemonClient,
  name: string | undefined,
  asked: number | undefined,
): Promise<LoadedForAgent> {
  const named = name ?? (await client.json(statusSchema, "GET", "/api/system/status")).default_model;
  const model = await client.json(modelSchema, "GET", modelPath(named));
  const [wanted, ...less] = contexts(model, asked);
  if (!model.capabilities.tools) {
    await writeLine(io.stderr, `Note: the template of ${model.alias} has no tools, which agents work with.`);
  }
  if (model.state === "loaded") {
    if (model.context_size >= wanted) return { model: model.alias, contextSize: model.context_size };
    await unloadIdle(client, model, wanted);
  }
  await writeLine(io.stderr, `Loading ${model.alias} with a context of ${wanted} tokens ...`);
  return await load(client, model.alias, [wanted, ...less]);
}

/** The contexts to try, the largest first. */
function contexts(model: Model, asked: number | undefined): readonly [number, ...number[]] {
  const { alias, purpose, trained_context_size: trained, load_settings: settings } = model;
  if (purpose !== "generate") {
    throw unfit(`${alias} does not generate text; name another model with --model.`);
  }
  if (asked !== undefined) return [asked];
  const reachable = reachableContext({ contextLength: trained }, { ropeFreqScale: settings.rope_freq_scale });
  if (reachable > 0 && reachable < LEAST_AGENT_CONTEXT) {
    throw unfit(
      `${alias} was trained for ${trained} tokens of context${reachable > trained ? `, and is stretched to ${reachable}` : ""}, and coding agents begin with more; name a model for ${LEAST_AGENT_CONTEXT} or more with --model ("daybreak search" and "daybreak pull" get one).`,
    );
  }
  const wanted = reachable > 0 ? Math.min(reachable, AGENT_CONTEXT) : AGENT_CONTEXT;
  return wanted > LEAST_AGENT_CONTEXT ? [wanted, LEAST_AGENT_CONTEXT] : [wanted];
}

function unfit(message: string): CliError {
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
  [size, ...less]: readonly number[],
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
    if (!isTooMuch || less.length === 0) throw error;
    return await load(client, alias, less);
  }
}
