import { Readable, Writable } from "node:stream";
import type { CliIo } from "../../../src/cli/cli-io.ts";
import { main } from "../../../src/cli/main.ts";

interface CliRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface FakeIo {
  readonly io: CliIo;
  readonly interrupt: (reason: unknown) => void;
  readonly output: () => { stdout: string; stderr: string };
}

/** Standard streams in memory. Without `stdin` the input is a terminal without input. */
export function fakeIo({ stdin, env = {} }: { stdin?: string; env?: NodeJS.ProcessEnv } = {}): FakeIo {
  const controller = new AbortController();
  const stdout = collector();
  const stderr = collector();
  const input: CliIo["stdin"] =
    stdin === undefined
      ? Object.assign(Readable.from([]), { isTTY: true })
      : Readable.from([Buffer.from(stdin)]);
  return {
    interrupt: (reason) => controller.abort(reason),
    output: () => ({ stdout: stdout.text(), stderr: stderr.text() }),
    io: {
      stdin: input,
      stdout: stdout.stream,
      stderr: stderr.stream,
      // Keeps the configuration of the user who runs the tests out.
      env: { XDG_CONFIG_HOME: "/nonexistent", HOME: "/nonexistent", ...env },
      signal: controller.signal,
      stopSignal: controller.signal,
    },
  };
}

/** Runs a command in this process. */
export async function runCli(args: string[], options: Parameters<typeof fakeIo>[0] = {}): Promise<CliRun> {
  const { io, output } = fakeIo(options);
  const code = await main(args, io);
  return { code, ...output() };
}

function collector(): { stream: Writable; text: () => string } {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk.toString("utf8"));
      done();
    },
  });
  return { stream, text: () => chunks.join("") };
}
