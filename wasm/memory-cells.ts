/**
 * Addresses of numbers that our kernels use or share with the engine's script. They lie below the module's data, which the
 * stock module does not use.
 */
export const MEMORY_CELLS = {
  /** uint8: 1 to return results that are there without computing a step. */
  holdStep: 16,
  /** uint32 each: depth of recursive functions. */
  ruleDepth: 24,
  leftDepth: 28,
  groupDepth: 36,
  /** int32: threads that sleep at a barrier. */
  sleepers: 32,
  /** int32: most tokens of a step; 0: the context's batch size. */
  stepTokens: 40,
  /** int32: 1 to abort the current step. */
  leaveStep: 44,
  /** int32: tokens of the aborted step. */
  leftTokens: 48,
  /** uint32: work for grammars since the last token. */
  grammarWork: 52,
  /** uint32: what that work is for. */
  grammarStage: 56,
  /** uint64 each: the server, and what is known of the guesses for each slot. */
  server: 104,
  guessRecords: 112,
  /** int32: tokens that have been guessed for the current step. */
  guessedTokens: 120,
  /** float32: a step of the draft model in hundredths of one of the model. */
  costOfDraft: 124,
  /** int64: most bytes of prompts that no slot holds any more; 0: none are kept. */
  promptStoreBytes: 256,
  /** int64: bytes that they have. */
  promptStoreUsed: 264,
  /** Address of the first one. */
  promptStoreFirst: 272,
  /** uint64: a bit for each slot that was idle when the step began. */
  idleSlots: 280,
  /** uint8: 1 when slots share the room of the context. */
  sharedContext: 288,
  /** uint64: programs for the GPU that the script has not read yet. */
  gpuStream: 296,
  /** uint32: words of them. */
  gpuStreamWords: 304,
  /** uint64: handle of the compute pass to which they belong. */
  gpuPass: 312,
  /** uint64: graphs that the GPU has computed. */
  gpuReplay: 320,
  /** uint64: a bit for each slot that only a request which names it may have. */
  reservedSlots: 328,
  /** uint32: 1 when the script gives the GPU what it reads of a file. */
  gpuUploads: 336,
  /** uint64 each: where a tensor for the GPU would be read to, and how much of it the GPU has been given instead. */
  uploadFrom: 344,
  uploadedBytes: 352,
  /** uint64: the first of the lists of tokens with which answers begin (given-tokens.h). */
  givenTokens: 360,
  /** uint64: where tokens of answers are written down for the script, and uint32: how many have been. */
  chosenTokens: 368,
  chosenCount: 376,
  /** uint8: 1 while a step of many tokens sums up as steps of one token do. */
  sumsOfOneToken: 380,
  /** uint8: 1 while the clock stands still, and int64[2]: at which time, in seconds and nanoseconds. */
  heldClock: 416,
  heldTime: 424,
  /** uint32: 1 while what is asked of a GPU is compiled and not run. */
  gpuRehearsal: 440,
  /** What steps cost, step_costs in step-costs.h; 144 bytes. */
  stepCosts: 448,
} as const;
