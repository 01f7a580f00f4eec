import type { BatchFormat } from "../batches/batch.ts";
import { anthropicDialect } from "../dialects/anthropic/anthropic-dialect.ts";
import { ANTHROPIC_BATCHES, messageBatchFormat } from "../dialects/anthropic/batches/message-batch-object.ts";
import { messageBatchRoutes } from "../dialects/anthropic/batches/message-batch-routes.ts";
import { llamaServerDialect } from "../dialects/llama-server/llama-server-dialect.ts";
import { managementDialect } from "../dialects/management/management-dialect.ts";
import type { ManagementServices } from "../dialects/management/management-services.ts";
import { chatSocketRoute } from "../dialects/native/chat-socket.ts";
import { nativeDialect } from "../dialects/native/native-dialect.ts";
import { ollamaDialect } from "../dialects/ollama/ollama-dialect.ts";
import { batchRoutes, fileRoutes } from "../dialects/openai/batches/batch-routes.ts";
import { OPENAI_BATCHES, openaiBatchFormat } from "../dialects/openai/batches/openai-batch-format.ts";
import { openaiDialect } from "../dialects/openai/openai-dialect.ts";
import { type Dialect, mountDialect } from "../http/route.ts";
import { loadOnDemand } from "../inference/create-inference.ts";

/**
 * All APIs of the daemon, in the order of the documentation. Add a dialect here to serve it. The first one's prefix "/"
 * covers all paths that no other dialect does.
 */
export function documentedDialects(services: ManagementServices): readonly Dialect[] {
  const dialects: readonly Dialect[] = [
    managementDialect(services, () => dialects),
    nativeDialect(services, [chatSocketRoute(services)]),
    openaiDialect(services, [...fileRoutes(services), ...batchRoutes(services)]),
    anthropicDialect(services, messageBatchRoutes(services)),
    ollamaDialect(services),
    llamaServerDialect(services),
  ];
  return dialects;
}

/** All dialects that are served. Ollama also has the OpenAI and Anthropic APIs, so its clients expect them under its address. */
export function createDialects(services: ManagementServices): readonly Dialect[] {
  const onDemand = { ...services, inference: loadOnDemand(services.inference) };
  return [
    ...documentedDialects(services),
    mountDialect(openaiDialect(onDemand), "/ollama"),
    mountDialect(anthropicDialect(onDemand), "/ollama"),
  ];
}

/** How the APIs write batches down. */
export const BATCH_FORMATS: Readonly<Record<string, BatchFormat>> = {
  [OPENAI_BATCHES]: openaiBatchFormat,
  [ANTHROPIC_BATCHES]: messageBatchFormat,
};
