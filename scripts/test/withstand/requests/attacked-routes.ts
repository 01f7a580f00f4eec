import type { Dialect } from "../../../../src/http/dialect.ts";
import { documentedDialects } from "../../../../src/daemon/dialects.ts";
import type { Route } from "../../../../src/http/route.ts";
import { fakeServices } from "../../../../test/support/fake-services.ts";

export interface AttackedRoute {
  readonly dialect: Dialect;
  readonly route: Route;
}

/** Ends the daemon or answers for as long as the client listens: no answer to check. */
const LEFT_OUT = new Set(["/api/system/shutdown", "/api/events", "/ws/chat"]);
/** Would ask a hub: attacks on that are another script's. */
const ASKS_A_HUB = /\/pull$|\/use$/;

/** Every route of the app, as the app itself lists them. */
export function attackedRoutes(): readonly AttackedRoute[] {
  return documentedDialects(fakeServices()).flatMap((dialect) =>
    dialect.routes
      .filter(({ path }) => !LEFT_OUT.has(path) && !ASKS_A_HUB.test(path))
      .map((route) => ({ dialect, route })),
  );
}

/** The path of a request: parameters become names. */
export function pathOf(route: Route, name: string): string {
  return route.path.replaceAll(/:\w+(?:\{[^}]*\})?/g, encodeURIComponent(name));
}
