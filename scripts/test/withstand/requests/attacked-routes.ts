import { type Api, isShared, type Route } from "../../../../src/http/route.ts";
import { documentedApis } from "../../../../src/daemon/create-apis.ts";
import { fakeServices } from "../../../../test/support/fake-services.ts";

export interface AttackedRoute {
  readonly api: Api;
  readonly route: Route;
  /** Headers of the client that the route is meant for, where two APIs share its path. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Headers by which APIs that share a path recognize their client. */
const CLIENT_HEADERS = { "anthropic-version": "2023-06-01" };

/** Ends the daemon or answers for as long as the client listens: no answer to check. */
const LEFT_OUT = new Set(["/api/system/shutdown", "/api/events", "/ws/chat"]);
/** Would ask a hub: attacks on that are another script's. */
const ASKS_A_HUB = /\/pull$|\/use$/;

/** Every route of the app, as the app itself lists them. */
export function attackedRoutes(): readonly AttackedRoute[] {
  return documentedApis(fakeServices()).flatMap((api) =>
    api.routes
      .filter(({ path }) => !LEFT_OUT.has(path) && !ASKS_A_HUB.test(path))
      .map((route) => ({ api: api, route, headers: isShared(api, route.path) ? CLIENT_HEADERS : {} })),
  );
}

/** The path of a request: parameters become names. */
export function pathOf(route: Route, name: string): string {
  return route.path.replaceAll(/:\w+(?:\{[^}]*\})?/g, encodeURIComponent(name));
}
