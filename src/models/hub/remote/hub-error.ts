import { isDiskFull, ServiceError } from "../../../errors/service-error.ts";

const ADVICE =
  "Check the network and HUB_URL, the hub's address; behind a proxy start the daemon with HTTPS_PROXY set. " +
  "Models that are on disk, those that ship with Daybreak among them, work without the hub.";
const RETRYABLE_STATUS = new Set([408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524]);

interface HubErrorContext {
  readonly hub: { readonly url: string; readonly hasToken: boolean };
  /** owner/repository */
  readonly repo: string;
  readonly revision: string;
}

/** Converts a failure to an error for the client; other errors are returned unchanged. */
export function toHubError(error: unknown, context: HubErrorContext): unknown {
  if (error instanceof HubHttpFailure) return fromStatus(error, context);
  if (error instanceof HubAnswerFailure || error instanceof StaleRemoteFailure)
    return unusable(error, context);
  if (error instanceof HubNetworkFailure)
    return unreachable(`The hub at ${context.hub.url} cannot be reached: ${error.message}. ${ADVICE}`, error);
  if (isDiskFull(error))
    return new ServiceError(
      "insufficient_disk",
      `The disk filled up while ${context.repo} was being downloaded. The part downloaded is kept: free space and pull again to resume.`,
      { cause: error },
    );
  return error;
}

function fromStatus(failure: HubHttpFailure, context: HubErrorContext): ServiceError {
  const { repo, revision, hub } = context;
  const { status, hubCode } = failure;
  if (!failure.fromHub)
    return unreachable(
      `The storage behind ${context.hub.url} refuses ${repo} (${failure.message}).`,
      failure,
    );
  if (hubCode === "RevisionNotFound")
    return notFound(`${repo} has no revision "${revision}" on the hub.`, failure);
  if (hubCode === "EntryNotFound") return notFound(`${repo} lacks a file that its listing names.`, failure);
  if (hubCode === "GatedRepo" || status === 403) return denied(context, failure);
  // The hub also answers 401 for repositories that do not exist, to conceal private ones.
  if (status === 401 && /invalid credentials/i.test(failure.message))
    return new ServiceError(
      "hub_access_denied",
      "The hub does not accept HUB_TOKEN: it is invalid or has expired.",
      {
        cause: failure,
      },
    );
  if (status === 401 || status === 404 || hubCode === "RepoNotFound")
    return notFound(
      `There is no repository ${repo} on the hub, or it is private${hub.hasToken ? " and HUB_TOKEN has no access to it" : " and needs HUB_TOKEN"}.`,
      failure,
    );
  if (status === 400 || status === 410 || status === 422 || status === 451)
    return notFound(`The hub does not give ${repo} at revision "${revision}" (${failure.message}).`, failure);
  if (!isTransient(failure)) return unusable(failure, context);
  return unreachable(`The hub at ${context.hub.url} answered ${repo} with ${failure.message}.`, failure);
}

function unusable(cause: Error, { hub, repo }: HubErrorContext): ServiceError {
  return new ServiceError(
    "hub_answer_invalid",
    `The answer of the hub at ${hub.url} for ${repo} cannot be used: ${cause.message}. Check that HUB_URL is the address of a model hub and that no proxy answers instead; the part downloaded is kept.`,
    { cause },
  );
}

function denied({ hub, repo }: HubErrorContext, cause: HubHttpFailure): ServiceError {
  const page = `${hub.url}/${repo}`;
  const remedy = hub.hasToken
    ? `the account of HUB_TOKEN has no access yet: ask for it on ${page}, and check that the token may read gated repositories`
    : `ask for access on ${page}, make an access token in your account's settings, and start the daemon with HUB_TOKEN set to it`;
  return new ServiceError("hub_access_denied", `${repo} is gated or private: ${remedy}.`, { cause });
}

function notFound(message: string, cause: unknown): ServiceError {
  return new ServiceError("hub_repo_not_found", message, { cause });
}

function unreachable(message: string, cause: HubHttpFailure | Error): ServiceError {
  const retryAfterSecs = cause instanceof HubHttpFailure ? cause.retryAfterSecs : undefined;
  return new ServiceError("hub_unreachable", message, {
    cause,
    ...(retryAfterSecs === undefined ? {} : { retryAfterSecs }),
  });
}

/**
 * An answer with an error status. This and the other failures below are no ServiceErrors, because most are retried and
 * never reach a client.
 */
export class HubHttpFailure extends Error {
  override readonly name = "HubHttpFailure";
  readonly status: number;
  /** The hub's X-Error-Code: RepoNotFound, RevisionNotFound, EntryNotFound, GatedRepo, … */
  readonly hubCode: string | undefined;
  /** False if a storage server behind the hub answered. */
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

/** No answer, or an incomplete one. */
export class HubNetworkFailure extends Error {
  override readonly name = "HubNetworkFailure";
  /** True if no connection could be made: no network, no such host, connection refused. */
  readonly neverConnected: boolean;
  /** True if a retry would fail in the same way: an untrusted certificate, a blocked port. */
  readonly isFinal: boolean;
  /** True if the connection was closed because too little data arrived. */
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

/** An answer that cannot be used. */
export class HubAnswerFailure extends Error {
  override readonly name = "HubAnswerFailure";
  /** True if the same request could have a different answer, so that it is worth one retry. */
  readonly mayDiffer: boolean;

  constructor(message: string, options: ErrorOptions & { mayDiffer?: boolean } = {}) {
    super(message, options);
    this.mayDiffer = options.mayDiffer ?? false;
  }
}

/** The server sends a different file than the part on disk, which is therefore useless. */
export class StaleRemoteFailure extends Error {
  override readonly name = "StaleRemoteFailure";
}

/** True if the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof HubNetworkFailure) return !error.isFinal;
  if (!(error instanceof HubHttpFailure)) return false;
  // A storage server answers 403 when a signed URL has expired; the next attempt gets a new one from the hub.
  return RETRYABLE_STATUS.has(error.status) || (!error.fromHub && error.status === 403);
}

/** True for an answer that contradicts itself or an earlier one; it is retried once. */
export function isContradiction(error: unknown): boolean {
  return error instanceof StaleRemoteFailure || (error instanceof HubAnswerFailure && error.mayDiffer);
}
