/** What all chunks of one answer share. */
export interface AnswerHead {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
}

/** @param prefix "chatcmpl", "cmpl" or "rerank" */
export function answerHead(prefix: string, model: string, now: () => number = Date.now): AnswerHead {
  return {
    id: `${prefix}-${crypto.randomUUID().replaceAll("-", "")}`,
    created: Math.floor(now() / 1000),
    model,
  };
}
