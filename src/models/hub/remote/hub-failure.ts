/**
 * What can go wrong between us and the hub, before it is known what it means to a caller. Kept apart from
 * ServiceError because most of these are retried and never seen.
 */
export type HubFailure = HubHttpFailure | HubNetworkFailure | HubAnswerFailure | StaleRemoteFailure;

/** An answer with an error status. */
export class HubHttpFailure extends Error {
  override readonly name = "HubHttpFailure";
  readonly status: number;
  /** X-Error-Code of the hub: RepoNotFound, RevisionNotFound, EntryNotFound, GatedRepo, … */
  readonly hubCode: string | undefined;
  /** False when a storage server behind the hub answered. */
  readonly fromHub: boolean;
  readonly retryAfterSecs: number | undefined;

  constructor(options: {
    status: number;
    hubCode: string | undefined;
    fromHub: boolean;
    retryAfterSecs: number | undefined;
    message: string;
  }) {
    super(options.message);
    this.status = options.status;
    this.hubCode = options.hubCode;
    this.fromHub = options.fromHub;
    this.retryAfterSecs = options.retryAfterSecs;
  }
}

/** No answer, or one that breaks off. */
export class HubNetworkFailure extends Error {
  override readonly name = "HubNetworkFailure";
  /** True when there was not even a connection: no network, no such host, nobody listening. */
  readonly neverConnected: boolean;
  /** True when it can only end like this again: a certificate that is not trusted, a port that is never asked. */
  readonly isFinal: boolean;
  /** True when so little came that the connection was given up. */
  readonly isStall: boolean;

  constructor(
    message: string,
    options: ErrorOptions & { neverConnected?: boolean; isFinal?: boolean; isStall?: boolean } = {},
  ) {
    super(message, options);
    this.neverConnected = options.neverConnected ?? false;
    this.isFinal = options.isFinal ?? false;
    this.isStall = options.isStall ?? false;
  }
}

/** An answer that has come and cannot be used. */
export class HubAnswerFailure extends Error {
  override readonly name = "HubAnswerFailure";
  /** True when another answer to the same question is thinkable: one is asked for once more. */
  readonly mayDiffer: boolean;

  constructor(message: string, options: ErrorOptions & { mayDiffer?: boolean } = {}) {
    super(message, options);
    this.mayDiffer = options.mayDiffer ?? false;
  }
}

/** What the server now sends is not what the part on disk began with: the part is worthless. */
export class StaleRemoteFailure extends Error {
  override readonly name = "StaleRemoteFailure";
}

const RETRYABLE_STATUS = new Set([408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524]);

/** True when the same request may succeed a little later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof HubNetworkFailure) return !error.isFinal;
  if (!(error instanceof HubHttpFailure)) return false;
  // A storage server says 403 when a signed address has run out; the next attempt asks the hub for a new one.
  return RETRYABLE_STATUS.has(error.status) || (!error.fromHub && error.status === 403);
}

/** True for an answer at odds with itself or with an earlier one: if the next is again, so will be all others. */
export function isContradiction(error: unknown): boolean {
  return error instanceof StaleRemoteFailure || (error instanceof HubAnswerFailure && error.mayDiffer);
}
