import path from "node:path";
import {
  FILE_MARKER,
  SERVICE_NAME,
  type ServiceManager,
  type ServiceProgram,
  type ToolCall,
  xmlText,
} from "./service-manager.ts";

interface LaunchdOptions {
  readonly program: ServiceProgram;
  readonly home: string;
  /** User id, which names the session in launchd. */
  readonly uid: number;
}

/** Agent of the account, which launchd starts at login. */
export function launchd({ program, home, uid }: LaunchdOptions): ServiceManager {
  const file = path.posix.join(home, "Library", "LaunchAgents", `${SERVICE_NAME}.plist`);
  const log = path.posix.join(home, "Library", "Logs", `${SERVICE_NAME}.log`);
  const domain = `gui/${uid}`;
  const target = `${domain}/${SERVICE_NAME}`;
  const end: ToolCall = ["launchctl", "bootout", target];
  const start: ToolCall = ["launchctl", "bootstrap", domain, file];
  return {
    title: "launchd agent of this account",
    file,
    content: launchdAgent(program, log),
    encoding: "utf8",
    query: ["launchctl", "print", target],
    readState: ({ code, stdout }) => {
      const pid = Number(/^\s*pid = (\d+)$/m.exec(stdout)?.[1]);
      return { enabled: code === 0, running: code === 0 && pid > 0, ...(pid > 0 && { pid }) };
    },
    activationCalls: ({ enabled }, hasChanged) => {
      if (!enabled) return [start];
      return hasChanged ? [end, start] : [["launchctl", "kickstart", target]];
    },
    callsBeforeRemoval: [end],
    callsAfterRemoval: [],
    nextSteps: [
      "It runs while this account is logged in.",
      `Its log: ${log}`,
      `After an update: launchctl kickstart -k ${target}`,
    ],
  };
}

/** Property list of the agent. Its output is appended to a log file that is never rotated. */
function launchdAgent({ command, env, stopSeconds }: ServiceProgram, log: string): string {
  const strings = command.map((word) => `    <string>${xmlText(word)}</string>`);
  const variables = Object.entries(env).map(
    ([name, value]) => `    <key>${xmlText(name)}</key>\n    <string>${xmlText(value)}</string>`,
  );
  const stop =
    stopSeconds === Number.POSITIVE_INFINITY
      ? "" // launchd cannot express it: its default applies
      : `  <key>ExitTimeOut</key>\n  <integer>${stopSeconds}</integer>\n`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<!-- ${FILE_MARKER} -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${SERVICE_NAME}</string>
  <key>ProgramArguments</key>
  <array>
${strings.join("\n")}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
${variables.join("\n")}
  </dict>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
${stop}  <key>StandardOutPath</key>
  <string>${xmlText(log)}</string>
  <key>StandardErrorPath</key>
  <string>${xmlText(log)}</string>
</dict>
</plist>
`;
}
