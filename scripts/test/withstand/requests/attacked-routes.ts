import { type Api, isShared, type Route } from "../../../../src/http/route.ts";
import { documentedApis } from "../../../../src/daemon/create-apis.ts";
import { fakeServices } from "../../../../test/support/fake-services.ts";

export interface AttackedRoute {
  readonly dialect: Api;
  readonly route: Route;
  /** What a client sends whom the route is meant for, where two APIs share its path. */
  readonly headers: Readonly<Record<string, string>>;
}

/** By these a client is told from others on a path that APIs share. */
const CLIENT_HEADERS = { "anthropic-version": "2023-06-01" };

/** Ends the daemon or answers for as long as the client listens: no answer to check. */
const LEFT_OUT = new Set(["/api/system/shutdown", "/api/events", "/ws/chat"]);
/** Would ask a hub: attacks on that are another script's. */
const ASKS_A_HUB = /\/pull$|\/use$/;

/** Every route of the app, as the app itself lists them. */
export function attackedRoutes(): readonly AttackedRoute[] {
  return documentedApis(fakeServices()).flatMap((dialect) =>
    dialect.routes
      .filter(({ path }) => !LEFT_OUT.has(path) && !ASKS_A_HUB.test(path))
      .map((route) => ({ dialect, route, headers: isShared(dialect, route.path) ? CLIENT_HEADERS : {} })),
  );
}

/** The path of a request: parameters become names. */
export function pathOf(route: Route, name: string): string {
  return route.path.replaceAll(/:\w+(?:\{[^}]*\})?/g, encodeURIComponent(name));
}
