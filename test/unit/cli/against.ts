import { type FakeRoutes, startFakeDaemon } from "./fake-daemon.ts";
import { runCli } from "./run-cli.ts";

/** Runs a command against a fake daemon with these routes; returns its output and the daemon's requests. */
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
