/** What the system is on which Dawn could not be loaded. */
interface LoadingSystem {
  readonly platform: NodeJS.Platform;
  /** Version of the C library that Node runs with; undefined on Linux means another one, musl. */
  readonly glibc: string | undefined;
}

/** Why Dawn's native part cannot be loaded, and what to do, in words. */
export function loadProblem(message: string, { platform, glibc }: LoadingSystem): string {
  const [line = ""] = message.split("\n", 1);
  if (platform === "linux" && glibc === undefined) {
    return "Dawn cannot be loaded here: it is built for Linux with glibc, and this system has another C library (musl, as in Alpine). An image of Debian or Ubuntu has glibc.";
  }
  if (/GLIBC(XX)?_[\d.]+' not found/.test(line)) {
    return `Dawn cannot be loaded here: it needs glibc 2.34 or later, and this system has ${glibc ?? "an older one"}. A newer release of the system has it.`;
  }
  return `Dawn cannot be loaded here: ${line}`;
}

/** The C library of this process, where it is glibc. */
export function glibcVersion(): string | undefined {
  if (process.platform !== "linux") return undefined;
  const { header } = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime;
}
