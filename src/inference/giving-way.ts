import { ServiceError } from "../errors/service-error.ts";
import type { AdmissionRequest } from "./admission-queue.ts";

interface Way extends Pick<AdmissionRequest, "onYield"> {
  /** Aborts with the client, or when the request has to give way. */
  readonly signal: AbortSignal;
}

/** Lets a request in the background end when another one needs its slot; its client may send it again. */
export function givingWay(client: AbortSignal, isBackground: boolean): Way {
  if (!isBackground) return { signal: client };
  const yielded = new AbortController();
  return {
    signal: AbortSignal.any([client, yielded.signal]),
    onYield: () =>
      yielded.abort(
        new ServiceError("overloaded", "A request that is not in the background needs the slot."),
      ),
  };
}
