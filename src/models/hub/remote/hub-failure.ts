/**
 * What can go wrong between us and the hub, before it is known what it means to a caller. Kept apart from
 * ServiceError because most of these are retried and never seen.
 */
export type HubFailure = HubHttpFailure | HubNetworkFailure | StaleRemoteFailure;

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

/** No answer, a broken one, or one that breaks off. */
export class HubNetworkFailure extends Error {
  override readonly name = "HubNetworkFailure";
  /** True when there was not even a connection: no network, no such host, nobody listening. */
  readonly neverConnected: boolean;

  constructor(message: string, options: ErrorOptions & { neverConnected?: boolean } = {}) {
    super(message, options);
    this.neverConnected = options.neverConnected ?? false;
  }
}

/** What the server now sends is not what the part on disk began with: the part is worthless. */
export class StaleRemoteFailure extends Error {
  override readonly name = "StaleRemoteFailure";
}

const RETRYABLE_STATUS = new Set([408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524]);

/** True when the same request may succeed a little later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof HubNetworkFailure || error instanceof StaleRemoteFailure) return true;
  if (!(error instanceof HubHttpFailure)) return false;
  // A storage server says 403 when a signed address has run out; the next attempt asks the hub for a new one.
  return RETRYABLE_STATUS.has(error.status) || (!error.fromHub && error.status === 403);
}
