import path from "node:path";
import { FILE_MARKER, type ServiceManager, type ServiceProgram, xmlText } from "./service-manager.ts";

const TASK = "Daybreak";

interface TaskOptions {
  readonly program: ServiceProgram;
  /** Folder for local data of the account (LOCALAPPDATA). */
  readonly dataFolder: string;
  /** DOMAIN\name */
  readonly account: string;
}

/** Task of Windows' scheduler that starts at login. */
export function taskScheduler({ program, dataFolder, account }: TaskOptions): ServiceManager {
  const folder = path.win32.join(dataFolder, "daybreak");
  const file = path.win32.join(folder, "service.xml");
  const log = path.win32.join(folder, "service.log");
  const [node, launcher] = program.command;
  return {
    title: "scheduled task of this account",
    file,
    content: scheduledTask(program, account, log),
    encoding: "utf16le",
    query: ["schtasks", "/Query", "/TN", TASK],
    // schtasks reports whether it runs only in the system's language.
    readState: ({ code }) => ({ enabled: code === 0, running: undefined }),
    activationCalls: () => [
      ["schtasks", "/Create", "/TN", TASK, "/XML", file, "/F"],
      ["schtasks", "/Run", "/TN", TASK],
    ],
    // The scheduler would kill the daemon during requests.
    callsBeforeRemoval: [
      [node, launcher, "stop"],
      ["schtasks", "/Delete", "/TN", TASK, "/F"],
    ],
    callsAfterRemoval: [],
    nextSteps: [
      "It runs while this account is logged in.",
      `Its log: ${log}`,
      "After an update: daybreak stop, then schtasks /Run /TN Daybreak",
    ],
  };
}

/** Task in the scheduler's XML. It runs without a console window, and its output goes to a file. */
function scheduledTask({ command, env }: ServiceProgram, account: string, log: string): string {
  const variables = Object.entries(env).map(([name, value]) => `set "${name}=${value}"&& `);
  const line = `${variables.join("")}${command.map((word) => `"${word}"`).join(" ")} >> "${log}" 2>&1`;
  return `<?xml version="1.0" encoding="UTF-16"?>
<!-- ${FILE_MARKER} -->
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>Daybreak, a local server of language models</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <UserId>${xmlText(account)}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>${xmlText(account)}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>255</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>conhost.exe</Command>
      <Arguments>${xmlText(`--headless cmd.exe /d /s /c "${line}"`)}</Arguments>
    </Exec>
  </Actions>
</Task>
`;
}
