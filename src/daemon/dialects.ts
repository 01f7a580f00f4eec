import { anthropicDialect } from "../dialects/anthropic/anthropic-dialect.ts";
import { managementDialect } from "../dialects/management/management-dialect.ts";
import type { ManagementServices } from "../dialects/management/management-services.ts";
import { chatSocketRoute } from "../dialects/native/chat-socket-route.ts";
import { nativeDialect } from "../dialects/native/native-dialect.ts";
import { ollamaDialect } from "../dialects/ollama/ollama-dialect.ts";
import { openaiDialect } from "../dialects/openai/openai-dialect.ts";
import { mountDialect, type Dialect } from "../http/dialect.ts";
import { loadOnDemand } from "../inference/load-on-demand.ts";

/**
 * Every API that the daemon speaks, as the documentation shows them: listing a dialect here is all it takes to serve
 * it. The prefix "/" of the first covers the paths that no other one does.
 */
export function documentedDialects(services: ManagementServices): readonly Dialect[] {
  const dialects: readonly Dialect[] = [
    managementDialect(services, () => dialects),
    nativeDialect(services, [chatSocketRoute(services)]),
    openaiDialect(services),
    anthropicDialect(services),
    ollamaDialect(services),
  ];
  return dialects;
}

/** All that is served: Ollama has two of these APIs beside its own, so its clients look for them under its address. */
export function createDialects(services: ManagementServices): readonly Dialect[] {
  const onDemand = { ...services, inference: loadOnDemand(services.inference) };
  return [
    ...documentedDialects(services),
    mountDialect(openaiDialect(onDemand), "/ollama"),
    mountDialect(anthropicDialect(onDemand), "/ollama"),
  ];
}
