import { AsyncLocalStorage } from "node:async_hooks";
import type { ActivityReport, LogLevel } from "../../api/wire/activity.ts";
import type { ServiceEvents } from "../../events/service-events.ts";
import {
  type FollowRequest,
  REQUEST_LINE,
  type RequestEnd,
  type RequestHead,
} from "../../http/middleware/request-log.ts";
import type { ObserveWork, WorkStats, WorkObserver } from "../../inference/request-accounting.ts";
import { BoundedRing, FollowedRequest, loggedFigures, PastLogs, PastRequests } from "./history.ts";

/** Limits of the stored events. */
const EVENT_LIMITS = { maxCount: 200, maxBytes: 128 * 1024 };
/** Bytes of an event's fixed fields. */
const EVENT_BYTES = 300;
/** End of a request's log line. Such lines are not stored, because the requests are. */
const REQUEST_LINE_END = `"msg":"${REQUEST_LINE}"}\n`;
/** More entries than a millisecond can have, so that the numbers of a restarted daemon are greater. */
const NUMBERS_PER_MS = 1000;
/** Method and path for a chat over a WebSocket, which is no HTTP request. */
const SOCKET_REQUEST = { method: "WS", path: "/ws/chat" };
/** HTTP status of a WebSocket. */
const SOCKET_STATUS = 101;

/** Ended request, for the log and for traces. */
export interface EndedRequest {
  readonly head: RequestHead;
  readonly startedAt: Date;
  readonly work: WorkStats;
  readonly end: RequestEnd;
  /** True for a chat over a WebSocket, which the request log does not cover. */
  readonly isSocketChat: boolean;
  /** Fields of the work in the log line. */
  readonly logged: Readonly<Record<string, unknown>>;
}

/**
 * Recent requests, events and log lines, in memory of a bounded size. Work that the layers below report is attributed
 * to the request in whose asynchronous context it runs, so that APIs and HTTP code do not pass it on.
 */
export class Activity {
  readonly #current = new AsyncLocalStorage<FollowedRequest>();
  readonly #requests = new PastRequests();
  readonly #events = new BoundedRing<ActivityReport["events"][number]>(EVENT_LIMITS);
  readonly #logs = new PastLogs();
  readonly #listeners: ((ended: EndedRequest) => void)[] = [];
  #number = Date.now() * NUMBERS_PER_MS;

  /** Observes requests, for the HTTP server. */
  readonly followRequest: FollowRequest = async (head, next) => {
    const request = new FollowedRequest(head);
    await this.#current.run(request, next);
    return (end) => this.#recordEnd(request, head, end, false);
  };

  /** For the inference. */
  readonly followWork: ObserveWork = () => {
    const request = this.#current.getStore();
    return request ? followerOf(request, () => undefined) : this.#socketChat();
  };

  /** Calls a listener for each ended request. */
  onRequestEnd(listener: (ended: EndedRequest) => void): void {
    this.#listeners.push(listener);
  }

  /** Stores events from now on. */
  subscribe(events: ServiceEvents): void {
    events.subscribe((event) => {
      const text = "message" in event ? event.message : "reason" in event ? event.reason : "";
      const model = "model" in event ? event.model : "";
      const number = this.#next();
      this.#events.add(number, { ...event, number }, EVENT_BYTES + 2 * (model.length + text.length));
    });
  }

  /** Stores a JSON line of the log. */
  readonly log = (line: string): void => {
    if (!line.endsWith(REQUEST_LINE_END)) this.#logs.add(this.#next(), line);
  };

  report({ after, level }: { readonly after: number; readonly level: LogLevel }): ActivityReport {
    return {
      next: this.#number,
      requests: this.#requests.after(after),
      events: this.#events.after(after).map(({ entry }) => entry),
      logs: this.#logs.after(after, level),
    };
  }

  #next(): number {
    this.#number += 1;
    return this.#number;
  }

  #socketChat(): WorkObserver {
    const startedAt = performance.now();
    const head = { id: crypto.randomUUID(), ...SOCKET_REQUEST };
    const request = new FollowedRequest(head);
    return followerOf(request, () => {
      const ms = Math.round(performance.now() - startedAt);
      this.#recordEnd(
        request,
        head,
        { status: SOCKET_STATUS, ms, isAborted: false, route: SOCKET_REQUEST.path },
        true,
      );
    });
  }

  #recordEnd(
    request: FollowedRequest,
    head: RequestHead,
    end: RequestEnd,
    isSocketChat: boolean,
  ): Readonly<Record<string, unknown>> {
    this.#requests.add(this.#next(), request, end);
    const logged = loggedFigures(request);
    const ended = { head, startedAt: request.time, work: request.work, end, isSocketChat, logged };
    for (const listener of this.#listeners) listener(ended);
    return logged;
  }
}

function followerOf(request: FollowedRequest, onEnd: () => void): WorkObserver {
  return {
    request: request.head.id,
    report: (figures) => request.note(figures),
    end: onEnd,
    fork: () => followerOf(request, () => undefined),
  };
}
