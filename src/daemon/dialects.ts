import { anthropicDialect } from "../dialects/anthropic/anthropic-dialect.ts";
import { messageBatchRoutes } from "../dialects/anthropic/batches/message-batch-routes.ts";
import { managementDialect } from "../dialects/management/management-dialect.ts";
import type { ManagementServices } from "../dialects/management/management-services.ts";
import { llamaServerDialect } from "../dialects/llama-server/llama-server-dialect.ts";
import { chatSocketRoute } from "../dialects/native/chat-socket-route.ts";
import { nativeDialect } from "../dialects/native/native-dialect.ts";
import { ollamaDialect } from "../dialects/ollama/ollama-dialect.ts";
import { batchRoutes } from "../dialects/openai/batches/batch-routes.ts";
import { fileRoutes } from "../dialects/openai/batches/file-routes.ts";
import { openaiDialect } from "../dialects/openai/openai-dialect.ts";
import { mountDialect, type Dialect } from "../http/dialect.ts";
import { loadOnDemand } from "../inference/load-on-demand.ts";

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
