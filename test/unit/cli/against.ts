import { type FakeRoutes, startFakeDaemon } from "./fake-daemon.ts";
import { runCli } from "./run-cli.ts";

/** Runs a command against a daemon with these routes, and tells what it was asked. */
export async function against(
  routes: FakeRoutes,
  args: string[],
  options: Parameters<typeof runCli>[1] = {},
) {
  await using daemon = await startFakeDaemon(routes);
  const run = await runCli([...args, "--url", daemon.url], options);
  return {
    ...run,
    requests: daemon.requests.map(({ method, path, body }) => [`${method} ${path}`, body]),
  };
}
