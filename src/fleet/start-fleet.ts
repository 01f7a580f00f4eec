import { FileFetcher } from "./files/file-fetcher.ts";
import { serveFiles } from "./files/file-server.ts";
import { FleetConnection } from "./fleet-connection.ts";
import { fleetReport } from "./fleet-report.ts";
import { Presence } from "./presence.ts";
import { SelfDescription, type SelfDescriptionOptions } from "./self-description.ts";
import { SpeedMeter } from "./speed-meter.ts";
import { CachedFiles } from "../models/hub/cache/cached-files.ts";
import type { HubPeers } from "../models/hub/hub-peers.ts";
import type { FollowWork } from "../inference/follow-work.ts";
import type { FleetView } from "../dialects/management/fleet-routes.ts";

/** A daemon's part in a fleet. */
export interface Fleet extends FleetView {
  readonly connection: FleetConnection;
  readonly presence: Presence;
  /** Brings files of the hub from other machines; undefined: this machine takes and gives none. */
  readonly peers: HubPeers | undefined;
  /** Measures how fast this machine works, besides the one who follows its work already. */
  follow(inner: FollowWork): FollowWork;
  /** Says that this machine leaves, and closes the connection. */
  close(): Promise<void>;
}

/**
 * Joins the fleet of the configuration, in the background: without a NATS server the daemon works alone until there is one.
 * @throws ServiceError invalid_parameter when a file that the configuration names cannot be read
 */
export function startFleet(options: Omit<SelfDescriptionOptions, "speeds">): Fleet {
  const { config, logger } = options;
  const connection = new FleetConnection(config.fleet, logger);
  const speeds = new SpeedMeter();
  const self = new SelfDescription({ ...options, speeds });
  const presence = new Presence({ connection, logger, self });
  self.onChange = () => presence.beat();
  const shares = config.fleet.share_files;
  if (shares) serveFiles({ connection, files: new CachedFiles(config.cache_dir), logger, id: self.card.id });
  return {
    connection,
    presence,
    peers: shares ? new FileFetcher({ connection, presence }) : undefined,
    follow: (inner) => speeds.follow(inner),
    joined: connection.joined,
    report: () => fleetReport(connection.isConnected, self, presence.machines),
    async close() {
      self.leave();
      presence.beat();
      presence.close();
      await connection.close();
    },
  };
}
