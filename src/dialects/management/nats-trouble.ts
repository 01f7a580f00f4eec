/** What a NATS server says to a wrong user or password, token or credentials. */
const REFUSAL = /^'?authorization violation/iu;

/** Whether the NATS server is there and refuses this machine. */
export function isRefused(problem: string | undefined): boolean {
  return problem !== undefined && REFUSAL.test(problem);
}

/** What keeps a machine from its NATS server: "is not reachable (connection refused)", say. */
export function natsTrouble(problem: string | undefined): string {
  if (isRefused(problem)) return "refuses the user and password (or token, credentials) of fleet.nats";
  return `is not reachable${problem === undefined ? "" : ` (${problem})`}`;
}
