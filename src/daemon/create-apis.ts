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
 * All APIs of the daemon, in the order of the documentation. Add a dialect here to serve it. The first one's prefix "/"
 * covers all paths that no other dialect does.
 */
export function documentedApis(services: ManagementServices): readonly Api[] {
  const dialects: readonly Api[] = [
    managementApi(services, () => dialects),
    nativeApi(services, [chatSocketRoute(services)]),
    openaiApi(services, [...fileRoutes(services), ...batchRoutes(services)]),
    anthropicApi(services, messageBatchRoutes(services)),
    ollamaApi(services),
    llamaServerApi(services),
  ];
  return dialects;
}

/** All dialects that are served. Ollama also has the OpenAI and Anthropic APIs, so its clients expect them under its address. */
export function createApis(services: ManagementServices): readonly Api[] {
  const onDemand = { ...services, inference: loadOnDemand(services.inference) };
  return [
    ...documentedApis(services),
    mountApi(openaiApi(onDemand), "/ollama"),
    mountApi(anthropicApi(onDemand), "/ollama"),
  ];
}

/** How the APIs write batches down. */
export const BATCH_FORMATS: Readonly<Record<string, BatchFormat>> = {
  [OPENAI_BATCHES]: openaiBatchFormat,
  [ANTHROPIC_BATCHES]: messageBatchFormat,
};
