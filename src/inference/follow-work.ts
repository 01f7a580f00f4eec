import type { FinishReason } from "../engine/protocol/generation.ts";
import type { Endpoint } from "../metrics/metrics.ts";

/** What becomes known of one generation, embedding or ranking. Of one that fails or is cancelled, that may be little. */
export interface WorkFigures {
  readonly endpoint?: Endpoint;
  /** The alias that answers. */
  readonly model?: string;
  readonly promptTokens?: number;
  /** Prompt tokens that were found in the KV cache. */
  readonly cachedTokens?: number;
  readonly completionTokens?: number;
  /** Milliseconds from the request's arrival, as those below: its model was there. */
  readonly loadedMs?: number;
  /** It had a slot. */
  readonly admittedMs?: number;
  readonly firstTokenMs?: number;
  readonly tokensPerSecond?: number;
  readonly finishReason?: FinishReason;
  /** Code of the error that ended it. */
  readonly failure?: string;
  /** Its client left before it was complete. */
  readonly isAborted?: boolean;
}

export interface WorkFollower {
  /** Of the request, as in its line in the log; undefined where nobody follows it. */
  readonly request?: string | undefined;
  /** Called a few times for each piece of work, never for each token. */
  note(figures: WorkFigures): void;
  /** Nothing more will be known; called once. */
  end(): void;
  /** Begins another piece of work for the same request. */
  further(): WorkFollower;
}

/** Called when a piece of work begins, within the request that it belongs to. */
export type FollowWork = () => WorkFollower;
