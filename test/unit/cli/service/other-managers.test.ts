import { describe, expect, it } from "vitest";
import { findManager, launchd, taskScheduler } from "../../../../src/cli/service/find-manager.ts";
import type { ToolResult } from "../../../../src/cli/service/service-manager.ts";

const program = {
  command: ["/opt/<node>/node", "/opt/daybreak/daybreak.mjs", "serve"],
  stopSeconds: 60,
  env: { SERVICE_LOG_FORMAT: "text" },
} as const;

const answer = (code: number, stdout = ""): ToolResult => ({ code, stdout, stderr: "" });

const agent = launchd({ program, home: "/Users/ada", uid: 501 });

/** Subcommands of launchctl for an activation. */
function steps(enabled: boolean, hasChanged: boolean): (string | undefined)[] {
  return agent.activationCalls({ enabled, running: enabled }, hasChanged).map(([, what]) => what);
}

function find(scope: "user" | "system", platform: NodeJS.Platform): unknown {
  return findManager({ scope, program, env: { HOME: "/home/ada" }, platform });
}

describe("launchd", () => {
  it("writes a property list in the account's folder", () => {
    expect(agent.file).toBe("/Users/ada/Library/LaunchAgents/daybreak.plist");
    expect(agent.content).toContain(
      "<string>/opt/&lt;node&gt;/node</string>\n    <string>/opt/daybreak/daybreak.mjs",
    );
    expect(agent.content).toContain("<key>ExitTimeOut</key>\n  <integer>60</integer>");
    expect(agent.content).toContain("<key>SuccessfulExit</key>\n    <false/>");
    expect(agent.content).toContain("<string>/Users/ada/Library/Logs/daybreak.log</string>");
  });

  it("loads the agent once, and again when it has changed", () => {
    expect(steps(false, true)).toEqual(["bootstrap"]);
    expect(steps(true, true)).toEqual(["bootout", "bootstrap"]);
    expect(steps(true, false)).toEqual(["kickstart"]);
  });

  it("reads the state from the process id", () => {
    expect(agent.readState(answer(113))).toEqual({ enabled: false, running: false });
    const running = answer(0, "gui/501/daybreak = {\n\tstate = running\n\tpid = 77\n}");
    expect(agent.readState(running)).toEqual({ enabled: true, running: true, pid: 77 });
    expect(agent.readState(answer(0, "\tstate = not running"))).toEqual({ enabled: true, running: false });
  });
});

describe("taskScheduler", () => {
  const task = taskScheduler({
    program: { ...program, command: ["C:\\Program Files\\nodejs\\node.exe", "C:\\d\\daybreak.mjs", "serve"] },
    dataFolder: "C:\\Users\\Ada\\AppData\\Local",
    account: "BOX\\Ada & Co",
  });

  it("writes the task in UTF-16 with a quoted command line", () => {
    expect(task.encoding).toBe("utf16le");
    expect(task.content).toContain('encoding="UTF-16"');
    expect(task.content).toContain("<UserId>BOX\\Ada &amp; Co</UserId>");
    expect(task.content).toContain(
      "&quot;C:\\Program Files\\nodejs\\node.exe&quot; &quot;C:\\d\\daybreak.mjs&quot; &quot;serve&quot; &gt;&gt; &quot;C:\\Users\\Ada\\AppData\\Local\\daybreak\\service.log&quot; 2&gt;&amp;1",
    );
  });

  it("sets no time limit and allows batteries", () => {
    expect(task.content).toContain("<ExecutionTimeLimit>PT0S</ExecutionTimeLimit>");
    expect(task.content).toContain("<StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>");
  });

  it("stops the daemon before the task is deleted", () => {
    expect(task.callsBeforeRemoval.map(([, what, last]) => [what, last])).toEqual([
      ["C:\\d\\daybreak.mjs", "stop"],
      ["/Delete", "/TN"],
    ]);
  });
});

describe("findManager", () => {
  it("explains what to do on an unknown system", () => {
    expect(() => find("user", "freebsd")).toThrow(/daybreak serve/);
  });

  it("refuses --system without systemd", () => {
    expect(() => find("system", "darwin")).toThrow(/--system needs systemd/);
  });
});
