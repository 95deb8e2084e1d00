import type { ServiceConfig } from '../config/upstream-fields.ts'
import type { UpstreamDeadlines, UpstreamTarget } from '../device/target.ts'
import type { Fields } from '../http/fields.ts'
import { readAuthorities, readNamedFile } from '../system/named-file.ts'
import { SetupError } from '../system/setup-error.ts'
import type { RequestFieldSettings } from './request-fields.ts'

/**
 * Reads where the device is from the configuration, and the certificate authorities from their file. Rejects with `SetupError`.
 *
 * @param key the configuration key of the service, for messages; here and below
 */
export async function upstreamTarget(
  { url, tls, reuse, parser }: ServiceConfig,
  key: string,
): Promise<UpstreamTarget> {
  return {
    origin: url.origin,
    socketPath: url.kind === 'unix' ? url.path : undefined,
    ca: tls.ca === undefined ? undefined : await readAuthorities(`${key}.tls.ca`, tls.ca),
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

/**
 * The fields that the sidecar sets on each request to a service. Reads the secret ones from their files. Rejects with
 * `SetupError`.
 */
export async function readRequestFields(service: ServiceConfig, key: string): Promise<RequestFieldSettings> {
  return { host: hostFor(service), added: await readAddedFields(service.headers, `${key}.headers`) }
}

/** The `Host` that the device receives; undefined for the client's own. */
function hostFor({ host, url }: ServiceConfig): string | undefined {
  switch (host) {
    case 'preserve':
      return undefined
    case 'target':
      return new URL(url.origin).host
    default:
      return host
  }
}

async function readAddedFields(headers: ServiceConfig['headers'], key: string): Promise<Fields> {
  const fields: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    fields.push(name, typeof value === 'string' ? value : await readValue(`${key}.${name}`, value.file))
  }
  return fields
}

/** Text that is one field value to every parser. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

async function readValue(key: string, path: string): Promise<string> {
  const value = (await readNamedFile(key, path)).toString('utf8').replace(/\r?\n$/, '')
  if (value === '' || !FIELD_VALUE.test(value)) {
    throw new SetupError(`${path} must hold one line of printable text`, { key })
  }
  return value
}
