import { AsyncLocalStorage } from "node:async_hooks";
import type { ActivityReport, LogLevel } from "../../api/management/activity-schemas.ts";
import type { ServiceEvents } from "../../events/service-events.ts";
import {
  type FollowRequest,
  REQUEST_LINE,
  type RequestEnd,
  type RequestHead,
} from "../../http/middleware/request-log.ts";
import type { FollowWork, WorkFigures, WorkFollower } from "../../inference/request-accounting.ts";
import { BoundedRing, FollowedRequest, loggedFigures, PastLogs, PastRequests } from "./history.ts";

/** Loads and unloads of days; messages of failures are sentences. */
const EVENTS = { maxCount: 200, maxBytes: 128 * 1024 };
/** The fixed fields of an event. */
const EVENT_BYTES = 300;
/** How the line of a request ends: that line is left out, because the requests are kept themselves. */
const REQUEST_LINE_END = `"msg":"${REQUEST_LINE}"}\n`;
/** So many things do not happen in a millisecond, so that numbers of a later daemon are greater. */
const NUMBERS_PER_MS = 1000;
/** Chats over a WebSocket are no requests of their own. */
const SOCKET = { method: "WS", path: "/ws/chat" };
/** The status of the WebSocket that they came by. */
const SOCKET_STATUS = 101;

/** A request that is over, for those who tell others of it. */
export interface EndedRequest {
  readonly head: RequestHead;
  readonly startedAt: Date;
  readonly work: WorkFigures;
  readonly end: RequestEnd;
  /** A chat over a WebSocket, of which the HTTP side does not know the end. */
  readonly isSocketChat: boolean;
  /** What the log's line says of its work. */
  readonly logged: Readonly<Record<string, unknown>>;
}

/**
 * What has happened of late, in memory of a fixed size. What the layers below report of their work is added to the request
 * in whose asynchronous context they do it, so that neither dialects nor the HTTP kit need to know of it.
 */
export class Activity {
  readonly #current = new AsyncLocalStorage<FollowedRequest>();
  readonly #requests = new PastRequests();
  readonly #events = new BoundedRing<ActivityReport["events"][number]>(EVENTS);
  readonly #logs = new PastLogs();
  readonly #listeners: ((ended: EndedRequest) => void)[] = [];
  #number = Date.now() * NUMBERS_PER_MS;

  /** For the HTTP side. */
  readonly followRequest: FollowRequest = async (head, next) => {
    const request = new FollowedRequest(head);
    await this.#current.run(request, next);
    return (end) => this.#ended(request, head, end, false);
  };

  /** For the inference. */
  readonly followWork: FollowWork = () => {
    const request = this.#current.getStore();
    return request ? followerOf(request, () => undefined) : this.#socketChat();
  };

  /** Tells a listener of each request that is over. */
  onRequestEnd(listener: (ended: EndedRequest) => void): void {
    this.#listeners.push(listener);
  }

  /** Remembers events from now on. */
  subscribe(events: ServiceEvents): void {
    events.subscribe((event) => {
      const text = "message" in event ? event.message : "reason" in event ? event.reason : "";
      const model = "model" in event ? event.model : "";
      const number = this.#next();
      this.#events.add(number, { ...event, number }, EVENT_BYTES + 2 * (model.length + text.length));
    });
  }

  /** Remembers a line of the log, in JSON. */
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

  #socketChat(): WorkFollower {
    const startedAt = performance.now();
    const head = { id: crypto.randomUUID(), ...SOCKET };
    const request = new FollowedRequest(head);
    return followerOf(request, () => {
      const ms = Math.round(performance.now() - startedAt);
      this.#ended(request, head, { status: SOCKET_STATUS, ms, isAborted: false, route: SOCKET.path }, true);
    });
  }

  #ended(
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

function followerOf(request: FollowedRequest, onEnd: () => void): WorkFollower {
  return {
    request: request.head.id,
    note: (figures) => request.note(figures),
    end: onEnd,
    further: () => followerOf(request, () => undefined),
  };
}
