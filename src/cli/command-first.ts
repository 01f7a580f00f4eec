/** Options of every command that talks to a daemon, and whether a value follows. */
const COMMON_OPTIONS: ReadonlyMap<string, boolean> = new Map([
  ["--json", false],
  ["--url", true],
  ["--socket", true],
  ["--config", true],
]);

/**
 * The arguments with the command's name in front: what is common to all commands may also stand before it, as in
 * `daybreak --url box list`. Anything else is left as it is.
 */
export function commandFirst(args: readonly string[]): readonly string[] {
  let at = 0;
  for (; at < args.length; at++) {
    const [name = "", inline] = (args[at] ?? "").split("=", 2);
    const takesValue = COMMON_OPTIONS.get(name);
    if (takesValue === undefined) break;
    if (takesValue && inline === undefined) at++;
  }
  const command = args[at];
  if (at === 0 || command === undefined || command.startsWith("-")) return args;
  return [command, ...args.slice(0, at), ...args.slice(at + 1)];
}
