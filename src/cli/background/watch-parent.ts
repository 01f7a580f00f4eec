/** A daemon that is left alone for so long does no harm. */
const LOOK_MS = 500;

/**
 * True below a package manager's script, npm start or npx. When npm is asked to end it ends the shell between it
 * and us, and the shell does not pass that on.
 */
export function runsBelowNpm(env: NodeJS.ProcessEnv): boolean {
  return env["npm_lifecycle_event"] !== undefined;
}

/** The environment without what {@link runsBelowNpm} goes by: for a process that is to outlive npm. */
export function withoutNpm(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { npm_lifecycle_event: _event, ...rest } = env;
  return rest;
}

/** Aborted when the process that started this one is gone. Does not keep the process alive. */
export function parentGone(parentId: () => number = () => process.ppid): AbortSignal {
  const controller = new AbortController();
  const parent = parentId();
  const timer = setInterval(() => {
    if (parentId() === parent) return;
    clearInterval(timer);
    controller.abort();
  }, LOOK_MS);
  timer.unref();
  return controller.signal;
}
