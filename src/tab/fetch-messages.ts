/** What a page and the worker of its engine say to each other: HTTP, in pieces. Ids are chosen by the page. */

interface RequestHead {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
}

export type FetchMessage =
  | {
      readonly type: "request";
      readonly id: number;
      readonly head: RequestHead;
      readonly body: Uint8Array | undefined;
    }
  /** The reader has room for one more piece of the answer. */
  | { readonly type: "pull"; readonly id: number }
  | { readonly type: "abort"; readonly id: number };

export type AnswerMessage =
  | {
      readonly type: "head";
      readonly id: number;
      readonly status: number;
      readonly headers: readonly (readonly [string, string])[];
    }
  | { readonly type: "piece"; readonly id: number; readonly bytes: Uint8Array }
  | { readonly type: "end"; readonly id: number }
  | { readonly type: "failed"; readonly id: number; readonly reason: string };
