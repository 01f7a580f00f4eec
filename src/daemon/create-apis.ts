import type { BatchFormat } from "../batches/batch.ts";
import { anthropicApi } from "../api/anthropic/anthropic-api.ts";
import { ANTHROPIC_BATCHES, messageBatchFormat } from "../api/anthropic/batches/message-batch-object.ts";
import { messageBatchRoutes } from "../api/anthropic/batches/message-batch-routes.ts";
import { llamaServerApi } from "../api/llama-server/llama-server-api.ts";
import { managementApi } from "../api/management/management-api.ts";
import type { ManagementServices } from "../api/management/management-services.ts";
import { chatSocketRoute } from "../api/native/chat-socket.ts";
import { nativeApi } from "../api/native/native-api.ts";
import { ollamaApi } from "../api/ollama/ollama-api.ts";
import { batchRoutes, fileRoutes } from "../api/openai/batches/batch-routes.ts";
import { OPENAI_BATCHES, openaiBatchFormat } from "../api/openai/batches/openai-batch-format.ts";
import { openaiApi } from "../api/openai/openai-api.ts";
import { type Api, mountApi } from "../http/route.ts";
import { loadOnDemand } from "../inference/create-inference.ts";

/**
 * All APIs of the daemon, in the order of the documentation. A new API is added here. The prefix "/" of the first one
 * covers all paths that no other API covers.
 */
export function documentedApis(services: ManagementServices): readonly Api[] {
  const { batches } = services;
  const apis: readonly Api[] = [
    managementApi(services, () => apis),
    nativeApi(services, [chatSocketRoute(services)]),
    openaiApi(services, batches ? [...fileRoutes({ batches }), ...batchRoutes({ batches })] : []),
    anthropicApi(services, batches ? messageBatchRoutes({ batches }) : []),
    ollamaApi(services),
    llamaServerApi(services),
  ];
  return apis;
}

/** All served APIs. Ollama serves the OpenAI and Anthropic APIs as well, so its clients expect them below /ollama. */
export function createApis(services: ManagementServices): readonly Api[] {
  const onDemand = { ...services, inference: loadOnDemand(services.inference) };
  return [
    ...documentedApis(services),
    mountApi(openaiApi(onDemand), "/ollama"),
    mountApi(anthropicApi(onDemand), "/ollama"),
  ];
}

/** Formats of batches by API. */
export const BATCH_FORMATS: Readonly<Record<string, BatchFormat>> = {
  [OPENAI_BATCHES]: openaiBatchFormat,
  [ANTHROPIC_BATCHES]: messageBatchFormat,
};
