import { readFileSync } from 'node:fs'
import type { Config } from '../config/schema.ts'
import { placesBounds, servicesOf } from '../config/upstream-fields.ts'
import type { Logger } from '../record/log.ts'

/**
 * Descriptors that are kept for Postern itself: for Node, both listeners, the log and the token file, and for files that are opened at run
 * time, such as a changed password file.
 */
const OWN = 64

/** The bounds on the connections of the admin listener. They may take one descriptor in `part`. */
const ADMIN = { most: 512, least: 8, part: 16 }

/** The bound on client connections is at least this number, even if the limit on descriptors is lower. */
const LEAST = 16

/** The soft limit on descriptors; undefined if it cannot be read. Node raises it to the hard limit at its start. */
function descriptorLimit(): number | undefined {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined ? undefined : Number(limit)
  } catch {
    return undefined
  }
}

/** How many connections the admin listener may have. They need no login, so they must not use up the descriptors of Postern itself. */
export function adminConnections(limit = descriptorLimit() ?? Number.POSITIVE_INFINITY): number {
  return Math.min(ADMIN.most, Math.max(ADMIN.least, Math.floor(limit / ADMIN.part)))
}

/**
 * The bound on client connections: `listen.max_connections`, or fewer if the limit on descriptors is too low for them beside the
 * descriptors of Postern itself, the admin listener and the connections to the device. A tunnel takes two descriptors, one on each side.
 */
function connectionsWithin(limit: number, config: Pick<Config, 'listen' | 'upstream'>): number {
  const services = servicesOf(config.upstream).map(({ service }) => service)
  const sum = (of: (service: (typeof services)[number]) => number): number =>
    services.reduce((total, service) => total + of(service), 0)
  const shared =
    limit - OWN - adminConnections(limit) - sum((service) => placesBounds(service).max + service.maxStreams)
  const tunnels = sum(({ maxTunnels }) => maxTunnels)
  const fit = Math.max(shared - tunnels, Math.floor(shared / 2), LEAST)
  return Math.min(config.listen.maxConnections, fit)
}

/** The bound on client connections of this process. Logs a warning if it is below `listen.max_connections`. */
export function boundConnections(config: Config, log: Logger, limit = descriptorLimit()): number {
  if (limit === undefined) return config.listen.maxConnections
  const connections = connectionsWithin(limit, config)
  if (connections < config.listen.maxConnections) {
    const remedy = 'raise the limit on open files (LimitNOFILE of the unit), or lower listen.max_connections'
    log.warn({ limit, connections, remedy }, 'listen.max_connections is lowered: too few files may be open')
  }
  return connections
}
