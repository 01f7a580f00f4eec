/**
 * Addresses of numbers that our kernels use or share with the engine's script. They are below the module's data, in memory
 * that the stock module does not use.
 */
export const MEMORY_CELLS = {
  /** uint8: 1 to return available results without computing a step. */
  holdStep: 16,
  /** uint32 each: depth of recursive functions. */
  ruleDepth: 24,
  leftDepth: 28,
  groupDepth: 36,
  /** int32: threads that sleep at a barrier. */
  sleepers: 32,
  /** int32: maximum tokens of a step; 0: the context's batch size. */
  stepTokens: 40,
  /** int32: 1 to abort the current step. */
  leaveStep: 44,
  /** int32: tokens of the aborted step. */
  leftTokens: 48,
  /** uint32: work for grammars since the last token. */
  grammarWork: 52,
  /** uint32: stage of that work (grammar.h). */
  grammarStage: 56,
  /** uint64 each: addresses of the server, and of the records of draft tokens for each slot. */
  server: 104,
  guessRecords: 112,
  /** int32: draft tokens for the current step. */
  guessedTokens: 120,
  /** float32: cost of a step of the draft model, in hundredths of a step of the model. */
  costOfDraft: 124,
  /** int64: maximum bytes of the prompt cache; 0: no prompts are cached. */
  promptStoreBytes: 256,
  /** int64: bytes of the cached prompts. */
  promptStoreUsed: 264,
  /** uint64: address of the first cached prompt. */
  promptStoreFirst: 272,
  /** uint64: a bit for each slot that was idle when the step began. */
  idleSlots: 280,
  /** uint8: 1 when slots share one context. */
  sharedContext: 288,
  /** uint64: address of the programs for the GPU that the script has not read yet. */
  gpuStream: 296,
  /** uint32: number of their words. */
  gpuStreamWords: 304,
  /** uint64: handle of their compute pass. */
  gpuPass: 312,
  /** uint64: address of the records of graphs (gpu-replay.h). */
  gpuReplay: 320,
  /** uint64: a bit for each slot that is reserved for requests that name it. */
  reservedSlots: 328,
  /** uint32: 1 when the script uploads tensors to the GPU while it reads a file. */
  gpuUploads: 336,
  /** uint64 each: heap address to which a tensor would be read, and how many bytes of it have been uploaded instead. */
  uploadFrom: 344,
  uploadedBytes: 352,
  /** uint64: address of the first list of forced tokens, with which answers begin (given-tokens.h). */
  givenTokens: 360,
  /** uint64: address of the chosen tokens for the script; uint32: their number. */
  chosenTokens: 368,
  chosenCount: 376,
  /** uint8: 1 while a step of many tokens adds in the same order as steps of one token. */
  sumsOfOneToken: 380,
  /** uint8: 1 while the clock is frozen; int64[2]: at which time, in seconds and nanoseconds. */
  heldClock: 416,
  heldTime: 424,
  /** uint32: 1 while GPU programs are compiled and not run. */
  gpuRehearsal: 440,
  /** step_costs in step-costs.h: measured times of steps; 144 bytes. */
  stepCosts: 448,
} as const;
