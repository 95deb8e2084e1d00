import { zoneIn } from '../config/address.ts'
import { tokenHeaders } from '../config/auth-fields.ts'
import { isClientName, requestKeeps } from '../config/header-field.ts'
import { responseChanges } from '../config/response-header-field.ts'
import { placesBounds, type ServiceConfig } from '../config/upstream-fields.ts'
import {
  type DeviceTls,
  deviceTls,
  type TlsSettings,
  type UpstreamDeadlines,
  type UpstreamTarget,
  unknownGroup,
} from '../device/target.ts'
import { isDeviceOrigin } from '../http/device-names.ts'
import { asCgi, type Fields } from '../http/fields.ts'
import { type BoundedQueue, createBoundedQueue } from '../system/bounded-queue.ts'
import type { Clock } from '../system/clock.ts'
import { readAuthorities, readNamedFile } from '../system/named-file.ts'
import { certificatesIn, type PemFile, privateKeyIn } from '../system/pem.ts'
import { reasonOf, SetupError } from '../system/setup-error.ts'
import type { UploadBuffering } from './buffered-body.ts'
import { uploadPace } from './pace.ts'
import type { QueuePlaces } from './place.ts'
import type { RequestFieldSettings } from './request-fields.ts'

/**
 * Reads where the device is from the configuration, and the certificates of `tls` from their files. Rejects with `SetupError`.
 *
 * @param key the configuration key of the service, for messages; here and below
 */
export async function upstreamTarget(
  { url, tls, reuse, parser, version }: ServiceConfig,
  key: string,
): Promise<UpstreamTarget> {
  // A missing file prevents the start even if it is not needed yet.
  const readsTls = url.origin.startsWith('https:') || (tls.ca ?? tls.cert) !== undefined
  return {
    origin: url.origin,
    socketPath: url.kind === 'unix' ? url.path : undefined,
    ...(url.kind === 'tcp' ? { zone: zoneIn(url.host) } : {}),
    tls: readsTls ? await readTls(tls, `${key}.tls`) : undefined,
    // HTTP/1.0 has no persistent connections.
    reuse: version === '1.0' ? 'never' : reuse,
    parser,
    version,
  }
}

async function readTls(
  { ca, cert, key: secret, ...tls }: ServiceConfig['tls'],
  key: string,
): Promise<DeviceTls> {
  const trusted = ca === undefined ? undefined : await readAuthorities(`${key}.ca`, ca)
  // The configuration has both or neither.
  const pair =
    cert === undefined || secret === undefined
      ? undefined
      : readPair(await readPem(`${key}.cert`, cert), await readPem(`${key}.key`, secret), key)
  const unknown = unknownGroup(tls.groups ?? [])
  if (unknown !== undefined)
    throw new SetupError(`${unknown} is no group of this OpenSSL; openssl ecparam -list_curves names most`, {
      key: `${key}.groups`,
    })
  try {
    return deviceTls({ ...tls, ca: trusted, pair })
  } catch (error) {
    throw new SetupError(`OpenSSL refuses the client certificate: ${reasonOf(error)}`, { key })
  }
}

async function readPem(key: string, path: string): Promise<PemFile> {
  return { path, text: (await readNamedFile(key, path)).toString('utf8') }
}

/** Refuses a key that does not belong to the certificate: OpenSSL accepts it, and then each handshake fails. */
function readPair(cert: PemFile, key: PemFile, at: string): TlsSettings['pair'] {
  const chain = certificatesIn(cert)
  if (typeof chain === 'string') throw new SetupError(chain, { key: `${at}.cert` })
  const secret = privateKeyIn(key)
  if (typeof secret === 'string') throw new SetupError(secret, { key: `${at}.key` })
  if (!chain[0].checkPrivateKey(secret)) {
    throw new SetupError(`the key in ${key.path} belongs to another certificate than ${cert.path}`, {
      key: `${at}.key`,
    })
  }
  return { cert: cert.text, key: key.text }
}

export function upstreamDeadlines(service: ServiceConfig): UpstreamDeadlines {
  return {
    connect: service.connectTimeout,
    response: service.responseTimeout,
    idle: service.idleTimeout,
  }
}

/** How requests share the device. */
export interface DeviceBounds {
  /** The rate (bytes a second) that an upload has to keep while other requests wait for a place. 0: no upload is too slow. */
  readonly minUploadRate: number
}

/** The bounds of every device. A slower upload is an attack (slow POST), or comes from a client that others should not wait for. */
export const DEVICE_BOUNDS: DeviceBounds = { minUploadRate: 1024 }

/** The places of a queue at the service, and how fast an upload has to be to keep one. */
export function placesOf(
  { queue: { timeout } }: ServiceConfig,
  { minUploadRate }: DeviceBounds,
  queue: BoundedQueue,
  clock: Pick<Clock, 'every'>,
): QueuePlaces {
  return { queue, pace: uploadPace(clock, minUploadRate, timeout, queue) }
}

/** With `buffer_uploads: auto`: how much of an upload is buffered (bytes), and how many uploads at most at once. */
export const AUTO_BUFFER: number = 1024 ** 2
const MOST_BUFFERS = 64

const HOUR = 3_600_000

const CHUNKED =
  'an upload of unknown length, longer than 1 MiB, went to the device in chunks: BusyBox httpd, merecat and others may keep only a part of it and answer 200'

/**
 * How uploads of unknown length are buffered; undefined if they are not. The log says at most once an hour that an upload was too long and
 * went to the device in chunks.
 */
export function uploadBuffering(
  service: ServiceConfig,
  bounds: DeviceBounds,
  key: string,
  clock: Clock,
  log: { warn(facts: object, message: string): void },
): UploadBuffering | undefined {
  const { bufferUploads } = service
  if (bufferUploads === 'off') return undefined
  const auto = bufferUploads === 'auto'
  const { max } = placesBounds(service)
  const inside = auto ? Math.min(max, MOST_BUFFERS) : max
  const { size: waiting, timeout: maxWait } = service.queue
  let told = Number.NEGATIVE_INFINITY
  const onLonger = (): void => {
    const now = clock.monotonic()
    if (now - told < HOUR) return
    told = now
    log.warn({ key: `${key}.buffer_uploads`, remedy: 'set it to the size of the longest upload' }, CHUNKED)
  }
  return {
    most: auto ? AUTO_BUFFER : bufferUploads,
    // HTTP/1.0 knows no chunks.
    onLonger: auto && service.version !== '1.0' ? onLonger : undefined,
    ...placesOf(service, bounds, createBoundedQueue(clock, { inside, waiting, maxWait }), clock),
  }
}

/**
 * How header fields change on the way to a service and back. Reads the secret ones from their files. Rejects with `SetupError`.
 */
export async function readRequestFields(service: ServiceConfig, key: string): Promise<RequestFieldSettings> {
  const { headers, host, names, responseHeaders, rewrite, url, auth } = service
  const { origin } = url
  const keeps = requestKeeps(headers)
  const scheme = origin.startsWith('https:') ? 'https' : 'http'
  const chosen = host === 'target' ? new URL(origin).host : host
  const sent = host === 'preserve' ? undefined : chosen
  return {
    host: sent,
    added: await readAddedFields(headers, `${key}.headers`),
    named: Object.keys(headers).filter((name) => isClientName(headers[name])),
    set: new Set(
      Object.keys(headers)
        .filter((name) => headers[name] !== null)
        .map(asCgi),
    ),
    keeps,
    claims: keeps === undefined || OF_THE_CLIENT.every(keeps),
    response: responseChanges(responseHeaders, tokenHeaders(auth)),
    scheme,
    referrers:
      sent !== undefined && isDeviceOrigin(`${scheme}://${sent}`, { origin, host: undefined, names }),
    names,
    rewrite: rewrite === 'on',
  }
}

/**
 * Postern's own fields about the client. If the device does not get all of them, it does not get what a proxy in front says about the
 * client, either.
 */
const OF_THE_CLIENT = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port']

async function readAddedFields(headers: ServiceConfig['headers'], key: string): Promise<Fields> {
  const fields: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    if (value === null || isClientName(value)) continue
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
