export type PullProgress =
  | { readonly status: "downloading"; readonly downloadedBytes: number; readonly totalBytes: number }
  | { readonly status: "verifying" }
  /** The hub did not answer correctly; it is asked again after the wait. */
  | ({ readonly status: "retrying" } & HubRetry)
  /** Something that people may want to know, in a sentence without its full stop. */
  | { readonly status: "noted"; readonly text: string };

export interface HubRetry {
  /** What went wrong, in a few words. */
  readonly reason: string;
  readonly waitMs: number;
}

/** A download under way. */
export interface Download {
  /** The name by which it was asked for first. */
  readonly name: string;
  /** The name that the model will have. */
  readonly alias: string;
  readonly downloadedBytes: number;
  /** 0 until the hub has told it. */
  readonly totalBytes: number;
}

export interface PullResult {
  readonly alias: string;
  /** owner/repository on the hub; empty for a model that ships. */
  readonly repo: string;
  readonly sizeBytes: number;
}
