/**
 * Addresses of numbers that our kernels keep for themselves or share with the engine's script. They lie below the module's
 * data, where the toolchain puts nothing; the stock module does not look there.
 */
export const MEMORY_CELLS = {
  /** uint8: answer from what has been computed, without computing a step. */
  holdStep: 16,
  /** uint32 each: how deep functions that call themselves are. */
  ruleDepth: 24,
  leftDepth: 28,
  groupDepth: 36,
  /** int32: threads that sleep at a barrier. */
  sleepers: 32,
  /** int32: most tokens of a step; 0: as many as the context was made for. */
  stepTokens: 40,
  /** int32: 1 to leave the step that is being computed. */
  leaveStep: 44,
  /** int32: tokens of the step that was left. */
  leftTokens: 48,
} as const;
