import { parseArgs } from "node:util";
import { toError } from "../../../../src/errors/service-error.ts";

/** Length of a run, and its seed. */
export interface RunOptions {
  /** The same seed gives the same inputs. */
  readonly seed: number;
  readonly seconds: number;
  /** Most inputs or operations; Infinity when only the time counts. */
  readonly count: number;
}

const OPTIONS = `
  --seed N      where the random numbers begin; a run says which it used (default: another one each time)
  --seconds N   how long to go on (default SECONDS)
  --count N     end after so many inputs or operations, if that comes first
  --help        this text

Ends with exit code 1 when a promise was broken; every finding is a line that tells how to see it again.
`;

/**
 * Reads the options that all of these scripts share. Prints the help and ends the process when it is asked for, or
 * when an option is wrong.
 * @param about what the script does, with its usage line
 */
export function readRunOptions(about: string, defaults: { seconds: number }): RunOptions {
  const help = `${about.trim()}\n${OPTIONS.replace("SECONDS", String(defaults.seconds))}`;
  const values = parse(help, defaults.seconds);
  if (values.help) {
    process.stdout.write(help);
    process.exit(0);
  }
  const number = (name: "seed" | "seconds" | "count"): number => {
    const value = Number(values[name] ?? Infinity);
    if (value >= 0) return value;
    return refuse(`--${name} takes a number, not "${values[name]}".`, help);
  };
  return { seed: number("seed"), seconds: number("seconds"), count: number("count") };
}

function parse(help: string, seconds: number) {
  try {
    return parseArgs({
      options: {
        seed: { type: "string", default: String(Date.now() % 1_000_000) },
        seconds: { type: "string", default: String(seconds) },
        count: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    }).values;
  } catch (error) {
    return refuse(toError(error).message, help);
  }
}

function refuse(problem: string, help: string): never {
  process.stderr.write(`${problem}\n\n${help}`);
  process.exit(2);
}
