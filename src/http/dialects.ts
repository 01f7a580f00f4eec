import { anthropicDialect } from "../dialects/anthropic/anthropic-dialect.ts";
import { nativeDialect } from "../dialects/native/native-dialect.ts";
import { ollamaDialect } from "../dialects/ollama/ollama-dialect.ts";
import { openaiDialect } from "../dialects/openai/openai-dialect.ts";
import type { Dialect } from "./dialect.ts";
import { managementDialect } from "./management-dialect.ts";
import { mountedDialect } from "./mounted-dialect.ts";

/** Every API that the daemon speaks. The first one's error shape also serves paths that no prefix covers. */
export const dialects: readonly Dialect[] = [
  managementDialect,
  nativeDialect,
  openaiDialect,
  anthropicDialect,
  ollamaDialect,
];

/** Ollama serves these APIs beside its own, so its clients look for them under its address. */
export const mountedDialects: readonly Dialect[] = [
  mountedDialect(openaiDialect, "/ollama"),
  mountedDialect(anthropicDialect, "/ollama"),
];
