import { isHost } from './ip.ts'

/** The names by which the device knows itself. */
export interface DeviceNames {
  /** Scheme, host and port by which the sidecar reaches the device, for example `http://127.0.0.1:8080`. */
  readonly origin: string
  /** The `Host` that the device received, if it was not the client's own. */
  readonly host: string | undefined
  /** Its further names, each with or without a port (`upstream.names`). */
  readonly names: readonly string[]
}

/**
 * Whether an origin is the device's: it has the device's scheme and one of its names, with the port of that name, or with the device's own:
 * nginx adds the port on which it listens.
 */
export function isDeviceOrigin(origin: string, device: DeviceNames): boolean {
  const { origin: found } = parseOrigin(origin) ?? {}
  const sites = sitesOf(device)
  return sites.some((site) => site.origin === found || withPort(site, sites[0]).origin === found)
}

/** Whether the domain of a cookie is a host of the device. Some firmware writes the port, too. */
export function isDeviceDomain(domain: string, device: DeviceNames): boolean {
  const found = isHost(domain) ? parseOrigin(`http://${domain}`) : undefined
  return found !== undefined && sitesOf(device).some(({ hostname }) => hostname === found.hostname)
}

/** The device by each of its names. The first is the one by which the sidecar reaches it. */
function sitesOf({ origin, host = '', names }: DeviceNames): readonly URL[] {
  const [scheme] = origin.split('//', 1)
  return [origin, ...[host, ...names].map((name) => `${scheme}//${name}`)].flatMap(
    (each) => parseOrigin(each) ?? [],
  )
}

/**
 * An origin in one spelling. The URL parser writes a name in lower case and an IPv6 address as in RFC 5952, and leaves out the default port
 * of the scheme. The dot at the end of an absolute name goes, too.
 */
function parseOrigin(origin: string): URL | undefined {
  const url = URL.parse(origin)
  if (url === null) return undefined
  url.hostname = url.hostname.replace(/\.$/, '')
  return url
}

function withPort(site: URL, { port }: Pick<URL, 'port'> = site): URL {
  const moved = new URL(site)
  moved.port = port
  return moved
}
