import { readFileSync } from 'node:fs'
import type { Config } from '../config/schema.ts'
import { placesBounds, servicesOf } from '../config/upstream-fields.ts'
import type { Logger } from '../record/log.ts'

/**
 * Descriptors that no client gets: for Node, both listeners, the log and the token file, and for files that are opened while the process runs,
 * such as a password file that has changed.
 */
const OWN = 64

/** The most connections of the admin listener, and the part of all descriptors that they may take: one in so many. */
const ADMIN = { most: 512, least: 8, part: 16 }

/** The least connections, however low the limit is. */
const LEAST = 16

/** The soft limit on descriptors; undefined if the system does not say it. Node raises it to the hard limit at its start. */
function descriptorLimit(): number | undefined {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined ? undefined : Number(limit)
  } catch {
    return undefined
  }
}

/** How many connections the admin listener may have. They need no login, so they must not take what Postern itself has to open. */
export function adminConnections(limit = descriptorLimit() ?? Number.POSITIVE_INFINITY): number {
  return Math.min(ADMIN.most, Math.max(ADMIN.least, Math.floor(limit / ADMIN.part)))
}

/**
 * The bound on client connections: `listen.max_connections`, or fewer if the limit on descriptors has no room for them beside those of Postern
 * itself, of the admin listener and of the connections to the device. A tunnel takes two, one on each side.
 */
function connectionsWithin(limit: number, config: Pick<Config, 'listen' | 'upstream'>): number {
  const services = servicesOf(config.upstream).map(({ service }) => service)
  const sum = (of: (service: (typeof services)[number]) => number): number =>
    services.reduce((total, service) => total + of(service), 0)
  const shared =
    limit - OWN - adminConnections(limit) - sum((service) => placesBounds(service).max + service.maxTunnels)
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
