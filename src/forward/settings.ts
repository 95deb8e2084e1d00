import { readFile } from 'node:fs/promises'
import type { ServiceConfig } from '../config/upstream-fields.ts'
import type { UpstreamDeadlines } from '../device/deadlines.ts'
import type { UpstreamTarget } from '../device/target.ts'
import { reasonOf } from '../system/node-permission.ts'
import { certificatesIn } from '../system/pem.ts'
import { SetupError } from '../system/setup-error.ts'

/** Where the configuration says that the device is. `key`, here and below, is where that stands, for messages. */
export async function upstreamTarget(
  { url, tls, reuse, parser }: ServiceConfig,
  key: string,
): Promise<UpstreamTarget> {
  return {
    origin: url.origin,
    socketPath: url.kind === 'unix' ? url.path : undefined,
    ca: tls.ca === undefined ? undefined : await readAuthorities(tls.ca, `${key}.tls.ca`),
    insecure: tls.insecure,
    reuse,
    parser,
  }
}

export function upstreamDeadlines(service: ServiceConfig): UpstreamDeadlines {
  return {
    connect: service.connectTimeout,
    response: service.responseTimeout,
    idle: service.idleTimeout,
  }
}

/** The Host that the device shall see, or undefined for the client's own. */
export function upstreamHost({ host, url }: ServiceConfig): string | undefined {
  switch (host) {
    case 'preserve':
      return undefined
    case 'target':
      return new URL(url.origin).host
    default:
      return host
  }
}

/** Looks for certificates, because OpenSSL silently reads a file without any as no authority, and then trusts no device. */
async function readAuthorities(path: string, key: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new SetupError(`${key}: cannot read ${path}: ${reasonOf(error)}`)
  })
  const certificates = certificatesIn({ path, text })
  if (typeof certificates === 'string') throw new SetupError(`${key}: ${certificates}`)
  return text
}
