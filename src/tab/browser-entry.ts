/** Public API: pages import it as daybreak.js, applications as daybreak/browser. */
import "./older-browsers.ts";
export { type BrowserEngine, createEngine, type CreateEngineOptions } from "./create-engine.ts";
export type { ChatAnswer, CompletionAnswer, EngineMessage, GenerateOptions } from "./engine-calls.ts";
export {
  type DownloadOptions,
  ModelStore,
  type StoredModel,
  type StoreOptions,
} from "./store/model-store.ts";
export type { HubOptions } from "./store/hub-files.ts";
